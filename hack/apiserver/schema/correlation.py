"""Correlation of new values with the old values that they replace, for transition rules.

Objects correlate by key, items of map-lists by their keys; items of other lists have no old value. An unchanged value
stays valid although a newer schema forbids it (validation ratcheting).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Old:
    """The value before the change; `ABSENT` without one."""

    present: bool
    value: Any = None

    def child(self, key: str) -> Old:
        """Return the old value of a property or of a map's entry."""
        if self.present and isinstance(self.value, dict) and key in self.value:
            return Old(present=True, value=self.value[key])
        return ABSENT

    def item(self, item: Any, schema: Mapping[str, Any]) -> Old:
        """Return the old value of a list's item."""
        keys = schema.get("x-kubernetes-list-map-keys") or []
        if not (keys and self.present and isinstance(self.value, list) and isinstance(item, dict)):
            return ABSENT
        expected = [item.get(key) for key in keys]
        for candidate in self.value:
            if isinstance(candidate, dict) and [candidate.get(key) for key in keys] == expected:
                return Old(present=True, value=candidate)
        return ABSENT

    def same(self, value: Any) -> bool:
        """Return whether the value is unchanged, so that its errors are dropped."""
        return self.present and _identical(self.value, value)


ABSENT = Old(present=False)


def _identical(old: Any, new: Any) -> bool:
    """Compare values; unlike ==, true differs from 1."""
    return bool(old == new) and isinstance(old, bool) == isinstance(new, bool)
