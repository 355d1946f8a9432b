"""Counts repeated Events, combines similar ones and drops floods (client-go, tools/record).

State of `events.EventRecorder`; it never waits or sends. It is lost on restart, but names are stable: a repetition
after a restart has the name of the stored Event.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from upgrade_manager.api.timestamps import format_time
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from upgrade_manager.kube.objects import Object

#: Series, groups and buckets to remember; the least recently used are evicted.
CACHE_SIZE = 4096
#: This many different messages about an object are combined into one Event, unless so many seconds pass between two.
MAX_SIMILAR = 10
SIMILAR_INTERVAL = 600.0
COMBINED = "(combined from similar events): "
#: Events in a burst for each object and type, and the seconds after which one more is allowed.
BURST = 25
REFILL_INTERVAL = 300.0
#: Characters.
MESSAGE_LIMIT = 1024
#: Characters of the object's name in an Event's name, which has at most 253 with the hash.
_NAME_LENGTH = 200

_VOLATILE = re.compile(
    r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"
    r"|\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?"
    r"|\b0x[0-9a-f]+\b"
    # Go durations (1m30.5s) and plain numbers, also with a unit, that stand alone.
    # Possessive, so that a message of many digits takes linear time.
    r"|(?<![\w.-])(?:\d++(?:\.\d++)?+(?:[KMGT]i?B|[a-zµ]{1,2})?+)++(?![\w-]|\.\w)",
    re.IGNORECASE | re.ASCII,
)

V = TypeVar("V")
Key: TypeAlias = tuple[str, ...]


@dataclass(slots=True, kw_only=True, eq=False)
class EventSeries:
    """One Event object: its content, its count, and its state on the API server."""

    #: The name of the Event.
    name: str
    about: Object
    type: str
    reason: str
    message: str
    first: datetime
    last: datetime
    #: Occurrences in this process; 0 for one that an earlier process should have recorded.
    count: int = 1
    #: Occurrences that an earlier process has counted.
    earlier: int = 0
    #: The caller chose the name: sent once, never counted or dropped.
    is_named: bool = False
    is_stored: bool = False
    #: Attempts to send it without a response.
    failures: int = 0
    #: Of the Event that is created, at its first occurrence.
    annotations: dict[str, str] = field(default_factory=dict)

    @property
    def namespace(self) -> str:
        """The namespace of the Event; validation requires `default` for cluster-scoped objects."""
        return objects.namespace(self.about) or "default"

    def to_event(self, component: str) -> Object:
        """Return the core/v1 Event."""
        about = self.about
        involved = {
            "apiVersion": about.get("apiVersion") or "",
            "kind": about.get("kind") or "",
            "namespace": objects.namespace(about),
            "name": objects.name(about),
            "uid": objects.uid(about),
            "resourceVersion": objects.resource_version(about),
        }
        metadata: Object = {"name": self.name, "namespace": self.namespace}
        if self.annotations:
            metadata["annotations"] = self.annotations
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": metadata,
            "involvedObject": {key: value for key, value in involved.items() if value},
            "type": self.type,
            "reason": self.reason,
            "source": {"component": component},
            "reportingComponent": component,
            "reportingInstance": "",
            "firstTimestamp": format_time(self.first),
            **self.latest(),
            "count": max(1, self.total),
        }

    @property
    def total(self) -> int:
        """All occurrences."""
        return self.earlier + self.count

    def latest(self) -> dict[str, Any]:
        """Return the fields that describe the last occurrence."""
        return {"lastTimestamp": format_time(self.last), "message": self.message[:MESSAGE_LIMIT]}

    def resume(self, stored: Object) -> bool:
        """Continue the count of the stored Event; return True if the stored count must be updated.

        After an attempt without a response, a stored Event with the same firstTimestamp is this series' own.
        """
        count = stored.get("count")
        if not self.failures or stored.get("firstTimestamp") != format_time(self.first):
            self.earlier = count if isinstance(count, int) else 1
        self.is_stored = True
        return bool(count != self.total)


@dataclass(slots=True)
class _SimilarEvents:
    #: At most MAX_SIMILAR.
    messages: set[str] = field(default_factory=set)
    #: Loop time.
    last: float = 0.0


@dataclass(slots=True)
class _TokenBucket:
    tokens: float
    #: Loop time of the last refill.
    refilled: float


class _LruCache(OrderedDict[Key, V], Generic[V]):
    def recall(self, key: Key, default: Callable[[], V]) -> V:
        """Return the value, created if absent, as the most recently used."""
        if key not in self:
            self[key] = default()
            if len(self) > CACHE_SIZE:
                self.popitem(last=False)
        self.move_to_end(key)
        return self[key]


class EventCorrelator:
    """Assigns each occurrence to a series."""

    def __init__(self, component: str) -> None:
        self._component = component
        self._series: _LruCache[EventSeries] = _LruCache()
        self._similar: _LruCache[_SimilarEvents] = _LruCache()
        self._buckets: _LruCache[_TokenBucket] = _LruCache()

    def record_once(self, series: EventSeries) -> EventSeries | None:
        """Return the series, or None if one with its name was recorded before."""
        known = self._series.recall((objects.namespace(series.about), series.name), lambda: series)
        return series if known is series else None

    def count(self, series: EventSeries, *, time: float) -> EventSeries | None:
        """Return the series that this occurrence belongs to; None above the rate limit. `time` is the loop's.

        Messages that differ only in volatile numbers belong to one series, whose name is derived from them.
        """
        identity = _identity(series.about)
        group = (*identity, series.type, series.reason)
        message = mask_volatile(series.message)
        key = (*group, message)
        if self._is_combined(group, message, time):
            series.message = COMBINED + series.message
            key = group
        known = self._series.recall(key, lambda: series)
        if known is series:
            series.name = _name(series.about, (self._component, *key))
        else:
            known.count += 1
            known.last = series.last
            known.message = series.message
        return known if self._is_allowed((*identity, series.type), time) else None

    def _is_combined(self, group: Key, message: str, time: float) -> bool:
        similar = self._similar.recall(group, _SimilarEvents)
        if time - similar.last > SIMILAR_INTERVAL:
            similar.messages.clear()
        similar.last = time
        if len(similar.messages) < MAX_SIMILAR:
            similar.messages.add(message)
        return len(similar.messages) >= MAX_SIMILAR

    def _is_allowed(self, source: Key, time: float) -> bool:
        bucket = self._buckets.recall(source, lambda: _TokenBucket(BURST, time))
        bucket.tokens = min(BURST, bucket.tokens + (time - bucket.refilled) / REFILL_INTERVAL)
        bucket.refilled = time
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True


def mask_volatile(message: str) -> str:
    """Mask volatile numbers in a message with #, so that repeated events deduplicate.

    Durations, ephemeral ports, uids, memory addresses and times are volatile; numbers in names and versions (`node-1`,
    `10.0.0.1`, `v1.8.0`) are not.
    """
    return _VOLATILE.sub("#", message)


def _name(about: Object, key: Key) -> str:
    """Return the object's name and a hash of the component and the series."""
    digest = sha256("\0".join(key).encode(errors="replace")).hexdigest()[:16]
    return f"{objects.name(about)[:_NAME_LENGTH].rstrip('.-')}.{digest}"


def _identity(about: Object) -> Key:
    return (about.get("apiVersion") or "", about.get("kind") or "", *objects.key(about), objects.uid(about))
