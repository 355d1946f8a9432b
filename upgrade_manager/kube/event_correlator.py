"""Which Events are one: repetitions are counted, near-repetitions combined, floods cut (client-go, tools/record).

Pure bookkeeping for `events.EventRecorder`: nothing here waits or sends. All of it is forgotten on restart, but for the
names: what is said again after one has the name of the Event that tells of it already.
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

#: How many series, groups and buckets are remembered, the latest used ones.
REMEMBERED = 4096
#: From so many different messages about one thing on they are one Event, unless so many seconds pass between two.
COMBINED_FROM = 10
COMBINED_WITHIN = 600.0
COMBINED = "(combined from similar events): "
#: About one object and type: so many Events at once, and one more each so many seconds.
BURST = 25
REFILL = 300.0
#: Characters; longer messages are cut.
MESSAGE_LIMIT = 1024
#: Characters of the object's name in an Event's, which may have 253 with the hash behind.
_NAME_LENGTH = 200

_CHANCE = re.compile(
    r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"
    r"|\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?"
    r"|\b0x[0-9a-f]+\b"
    # Go's durations (1m30.5s) and plain numbers, also with a unit; nothing that goes on to either side.
    # Possessive, for a message of many digits must not take long.
    r"|(?<![\w.-])(?:\d++(?:\.\d++)?+(?:[KMGT]i?B|[a-zµ]{1,2})?+)++(?![\w-]|\.\w)",
    re.IGNORECASE | re.ASCII,
)

V = TypeVar("V")
Group: TypeAlias = tuple[str, ...]
SeriesKey: TypeAlias = tuple[str, ...]


@dataclass(slots=True, kw_only=True, eq=False)
class Series:
    """One Event object and what it says so far."""

    #: Of the Event; follows from what it says unless the caller gave one.
    name: str
    about: Object
    type: str
    reason: str
    message: str
    first: datetime
    last: datetime
    #: Occurrences that this process knows of.
    count: int = 1
    #: Those that an earlier process has counted.
    before: int = 0
    #: A name that the caller gave: sent once, never counted, never dropped.
    fixed: bool = False
    #: Whether the API server has it.
    stored: bool = False
    #: Attempts to send it that nobody answered.
    failures: int = 0


@dataclass(slots=True)
class _Similar:
    #: The messages seen, up to COMBINED_FROM of them.
    messages: set[str] = field(default_factory=set)
    #: The loop's time of the latest.
    last: float = 0.0


@dataclass(slots=True)
class _Bucket:
    tokens: float
    #: The loop's time up to which it is filled.
    filled: float


class _Latest(OrderedDict[Group, V], Generic[V]):
    """A mapping that forgets what was not used for longest."""

    def recall(self, key: Group, default: Callable[[], V]) -> V:
        """The value, made if there is none; it counts as used."""
        if key not in self:
            self[key] = default()
            if len(self) > REMEMBERED:
                self.popitem(last=False)
        self.move_to_end(key)
        return self[key]


class Correlator:
    """Assigns each occurrence to a series."""

    def __init__(self, component: str) -> None:
        self._component = component
        self._series: _Latest[Series] = _Latest()
        self._similar: _Latest[_Similar] = _Latest()
        self._buckets: _Latest[_Bucket] = _Latest()

    def named(self, series: Series) -> Series | None:
        """The series under its caller's name, or None when it was recorded before."""
        key = (objects.namespace(series.about), series.name)
        known = self._series.recall(key, lambda: series)
        return series if known is series else None

    def counted(self, series: Series, *, time: float) -> Series | None:
        """The series that this occurrence belongs to, counted; None when there are too many. `time` is the loop's.

        Messages that differ in numbers of chance only are one. The series' name is made from what makes it one.
        """
        group = (*_identity(series.about), series.type, series.reason)
        said = gist(series.message)
        combined = self._is_combined(group, said, time)
        if combined:
            series.message = COMBINED + series.message
        key = group if combined else (*group, said)
        known = self._series.recall(key, lambda: series)
        if known is series:
            series.name = _name(series.about, (self._component, *key))
        else:
            known.count += 1
            known.last = series.last
            known.message = series.message
        return known if self._is_allowed((*_identity(series.about), series.type), time) else None

    def _is_combined(self, group: Group, message: str, time: float) -> bool:
        similar = self._similar.recall(group, _Similar)
        if time - similar.last > COMBINED_WITHIN:
            similar.messages.clear()
        similar.last = time
        if len(similar.messages) < COMBINED_FROM:
            similar.messages.add(message)
        return len(similar.messages) >= COMBINED_FROM

    def _is_allowed(self, source: Group, time: float) -> bool:
        bucket = self._buckets.recall(source, lambda: _Bucket(BURST, time))
        bucket.tokens = min(BURST, bucket.tokens + (time - bucket.filled) / REFILL)
        bucket.filled = time
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True


def body(series: Series, component: str) -> dict[str, Any]:
    """The core/v1 Event; in namespace `default` for cluster-scoped objects, where alone validation lets it be."""
    about = series.about
    involved = {
        "apiVersion": about.get("apiVersion") or "",
        "kind": about.get("kind") or "",
        "namespace": objects.namespace(about),
        "name": objects.name(about),
        "uid": objects.uid(about),
        "resourceVersion": objects.resource_version(about),
    }
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": series.name, "namespace": objects.namespace(about) or "default"},
        "involvedObject": {key: value for key, value in involved.items() if value},
        "type": series.type,
        "reason": series.reason,
        "message": series.message[:MESSAGE_LIMIT],
        "source": {"component": component},
        "reportingComponent": component,
        "reportingInstance": "",
        "firstTimestamp": format_time(series.first),
        **progress(series),
    }


def progress(series: Series) -> dict[str, Any]:
    """What changes while it goes on."""
    return {
        "count": series.before + series.count,
        "lastTimestamp": format_time(series.last),
        "message": series.message[:MESSAGE_LIMIT],
    }


def latest(series: Series) -> dict[str, Any]:
    """What is known of that without knowing how often others have said it."""
    return {key: value for key, value in progress(series).items() if key != "count"}


def take_up(series: Series, stored: Object) -> bool:
    """Go on counting where the Event that is there has come to; whether it does not tell that yet.

    After an attempt without an answer, one that began when the series did is our own, and its answer was lost.
    """
    counted = stored.get("count")
    if not series.failures or stored.get("firstTimestamp") != format_time(series.first):
        series.before = counted if isinstance(counted, int) else 1
    series.stored = True
    return bool(counted != progress(series)["count"])


def _name(about: Object, key: SeriesKey) -> str:
    """The object's name, and a hash of who says what about it."""
    digest = sha256("\0".join(key).encode(errors="replace")).hexdigest()[:16]
    return f"{objects.name(about)[:_NAME_LENGTH].rstrip('.-')}.{digest}"


def _identity(about: Object) -> Group:
    return (
        about.get("apiVersion") or "",
        about.get("kind") or "",
        objects.namespace(about),
        objects.name(about),
        objects.uid(about),
    )


def gist(message: str) -> str:
    """The message with a # for whatever may be different the next time."""
    return _CHANCE.sub("#", message)
