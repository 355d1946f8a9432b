"""Remembers the time at which a state was first seen, for waits whose objects have no time for it.

pipeline/informers.py keeps one for each plan; node_upgrade/waits.py reads it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable
    from datetime import datetime


class FirstSeen:
    """Remembers one value for each key in this process; after a restart, the recorded blocker has the time."""

    def __init__(self) -> None:
        self._seen: dict[Hashable, tuple[object, datetime]] = {}
        self._used: set[Hashable] = set()

    def since(self, key: Hashable, value: object = None, *, now: datetime, known: datetime | None = None) -> datetime:
        """Return the time at which the key took the value; for a new key, `known` or else now."""
        self._used.add(key)
        if key not in self._seen:
            self._seen[key] = value, known or now
        elif self._seen[key][0] != value:
            self._seen[key] = value, now
        return self._seen[key][1]

    def latched(
        self, key: Hashable, *, value: bool, now: datetime, known: datetime | None = None
    ) -> tuple[bool, datetime]:
        """Return True once the value was true, also after it has become false again, and the time since then."""
        is_so = value or bool(self._seen.get(key, (False,))[0])
        return is_so, self.since(key, is_so, now=now, known=known)

    def prune(self) -> None:
        """Forget the keys that were not read since the last call, because their states are over."""
        self._seen = {key: seen for key, seen in self._seen.items() if key in self._used}
        self._used = set()
