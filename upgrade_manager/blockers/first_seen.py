"""Remembers the time at which a state was first seen, for waits whose objects have no time for it.

pipeline/informers.py keeps one for each plan; node_upgrade/waits.py reads it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable
    from datetime import datetime


class FirstSeen:
    """Remembers one value by key, in this process; after a restart a known blocker has the time."""

    def __init__(self) -> None:
        self._seen: dict[Hashable, tuple[object, datetime]] = {}
        self._used: set[Hashable] = set()

    def since(self, key: Hashable, value: object = None, *, now: datetime, known: datetime | None = None) -> datetime:
        """Return when the key took the value; `known` or now if this process has not seen the key before."""
        self._used.add(key)
        if key not in self._seen:
            self._seen[key] = value, known or now
        elif self._seen[key][0] != value:
            self._seen[key] = value, now
        return self._seen[key][1]

    def prune(self) -> None:
        """Forget the keys that were not asked for since the last call: what was seen is over."""
        self._seen = {key: seen for key, seen in self._seen.items() if key in self._used}
        self._used = set()
