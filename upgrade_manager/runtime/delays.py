"""The keys of a work queue that become ready later."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from upgrade_manager.runtime.lanes import Priority

K = TypeVar("K", bound="Hashable")

#: Stale heap entries that are kept before the heap is rebuilt.
_SLACK = 64


@dataclass(order=True, frozen=True, slots=True)
class Entry(Generic[K]):
    """One key's appointment."""

    due: float
    #: Breaks ties by age, so that keys never get compared.
    number: int
    key: K = field(compare=False)
    priority: Priority = field(compare=False)


class Delays(Generic[K]):
    """One entry per key: of two times the earlier wins, of two priorities the higher."""

    def __init__(self) -> None:
        #: The valid entry of each key.
        self._entries: dict[K, Entry[K]] = {}
        #: All valid entries and some that were replaced or discarded, at most twice as many and a few.
        self._heap: list[Entry[K]] = []
        self._number = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: K) -> bool:
        return key in self._entries

    def put(self, key: K, *, due: float, priority: Priority) -> None:
        """Make the key due at this time, or earlier if it already is."""
        old = self._entries.get(key)
        if old is not None:
            due, priority = min(due, old.due), max(priority, old.priority)
        self._number += 1
        entry = Entry(due, self._number, key, priority)
        self._entries[key] = entry
        heapq.heappush(self._heap, entry)
        self._compact()

    def discard(self, key: K) -> Priority | None:
        """Drop the key's entry; returns the priority that it had."""
        entry = self._entries.pop(key, None)
        return entry.priority if entry else None

    def clear(self) -> None:
        """Drop everything."""
        self._entries.clear()
        self._heap.clear()

    def next_due(self) -> float | None:
        """When the first key becomes due; None when there is none."""
        while self._heap and not self._valid(self._heap[0]):
            heapq.heappop(self._heap)
        return self._heap[0].due if self._heap else None

    def pop_due(self, now: float) -> Iterator[tuple[K, Priority]]:
        """Take the keys that are due, earliest first."""
        while (due := self.next_due()) is not None and due <= now:
            entry = heapq.heappop(self._heap)
            del self._entries[entry.key]
            yield entry.key, entry.priority

    def _valid(self, entry: Entry[K]) -> bool:
        return self._entries.get(entry.key) is entry

    def _compact(self) -> None:
        if len(self._heap) > 2 * len(self._entries) + _SLACK:
            self._heap = list(self._entries.values())
            heapq.heapify(self._heap)
