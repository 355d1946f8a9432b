"""The ready keys of a work queue, in the order in which workers get them."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable

K = TypeVar("K", bound="Hashable")


class Priority(IntEnum):
    """The two classes of work; controller-runtime's numbers, so that its dashboards read well."""

    #: What start-up and resync bring: everything at once, nothing of it urgent.
    LOW = -100
    #: Somebody changed something.
    NORMAL = 0

    @classmethod
    def of(cls, number: int) -> Priority:
        """The class of any number: below 0 is low."""
        return cls.LOW if number < 0 else cls.NORMAL


@dataclass(frozen=True, slots=True)
class Place:
    """Where a key stands in its lane."""

    #: When the key became ready; its waiting time counts from here.
    since: float
    #: The moment it is served by: the key with the smallest is next. Grows along each lane.
    turn: float


class Lanes(Generic[K]):
    """First in, first out within a class; normal before low, until a low key has waited `aging` seconds.

    A low key is served as if it had come `aging` seconds later, so it is overtaken by what is added within that time
    and by nothing after it: no stream of normal work, however dense, starves it (controller-runtime's queue has no
    such rule).
    """

    def __init__(self, *, aging: float) -> None:
        self._aging = aging
        #: A key is in at most one lane.
        self._lanes: dict[Priority, OrderedDict[K, Place]] = {p: OrderedDict() for p in Priority}

    def __len__(self) -> int:
        return sum(len(lane) for lane in self._lanes.values())

    def __contains__(self, key: K) -> bool:
        return any(key in lane for lane in self._lanes.values())

    def depth(self, priority: Priority) -> int:
        """Keys in one class."""
        return len(self._lanes[priority])

    def oldest(self) -> float | None:
        """When the first keys of the lanes became ready, the earlier of them; None when there is none."""
        heads = [next(iter(lane.values())).since for lane in self._lanes.values() if lane]
        return min(heads, default=None)

    def push(self, key: K, *, priority: Priority, now: float) -> None:
        """Put a key that is in no lane at the tail of its class."""
        self._lanes[priority][key] = Place(now, now + (self._aging if priority is Priority.LOW else 0.0))

    def promote(self, key: K, *, now: float) -> bool:
        """Move a low key to the tail of the normal lane, unless it has aged, which is as good. True when it moved."""
        place = self._lanes[Priority.LOW].get(key)
        if place is None or place.turn <= now:
            return False
        del self._lanes[Priority.LOW][key]
        self._lanes[Priority.NORMAL][key] = Place(place.since, now)
        return True

    def pop(self) -> tuple[K, Priority, Place]:
        """Take the key whose turn it is. Raises LookupError when there is none."""
        turns = [
            (next(iter(lane.values())).turn, -priority, priority) for priority, lane in self._lanes.items() if lane
        ]
        if not turns:
            raise LookupError("no key is ready")
        priority = min(turns)[2]
        key, place = self._lanes[priority].popitem(last=False)
        return key, priority, place
