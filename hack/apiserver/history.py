"""The recent events of one collection, for watches that resume; bounded like the watch cache of kube-apiserver.

The history keeps the events of the last 75 seconds, at least 100 and at most 102 400 of them. A watch from an older
revision gets 410.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from hack.apiserver.stored import Stored

KEEP_SECONDS = 75.0
KEEP_AT_LEAST = 100
KEEP_AT_MOST = 102_400
#: Entries are dropped in batches, because deleting from the front of a list moves the rest.
BATCH = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One change of one object."""

    kind: Literal["ADDED", "MODIFIED", "DELETED"]
    #: The state after the change; for a deleted object the last state, with the revision of the deletion.
    stored: Stored
    previous: Stored | None
    #: Seconds since the epoch.
    time: float


class History:
    """Entries in the order of their revisions; a position counts all entries ever appended."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        #: The position of the first entry that is kept.
        self._first = 0
        #: The revision of the last entry that was dropped.
        self.compacted = 0

    @property
    def end(self) -> int:
        """Return the position behind the last entry."""
        return self._first + len(self._entries)

    def append(self, entry: Entry) -> None:
        """Append a change and drop expired entries."""
        self._entries.append(entry)
        if self._due(entry.time):
            self._forget(BATCH)

    def compact(self, revision: int) -> None:
        """Drop everything up to a revision."""
        self._forget(self._index(revision))
        self.compacted = max(self.compacted, revision)

    def position(self, revision: int) -> int | None:
        """Return the position of the entries after a revision; None when some of them were dropped."""
        if revision < self.compacted:
            return None
        return self._first + self._index(revision)

    def since(self, position: int) -> list[Entry] | None:
        """Return the entries from a position on; None when some of them were dropped."""
        if position < self._first:
            return None
        return self._entries[position - self._first :]

    def _due(self, now: float) -> bool:
        if len(self._entries) > KEEP_AT_MOST:
            return True
        return len(self._entries) >= KEEP_AT_LEAST + BATCH and self._entries[BATCH - 1].time < now - KEEP_SECONDS

    def _index(self, revision: int) -> int:
        return bisect_right(self._entries, revision, key=lambda entry: entry.stored.revision)

    def _forget(self, count: int) -> None:
        if count:
            self.compacted = self._entries[count - 1].stored.revision
            del self._entries[:count]
            self._first += count
