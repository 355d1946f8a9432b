"""Records Events for `kubectl describe`, in the background and best effort."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, NoReturn

import structlog

from upgrade_manager.kube import objects
from upgrade_manager.kube.clock import loop_time
from upgrade_manager.kube.errors import AlreadyExists, Forbidden, KubeError, NotFound, Throttled, Transient
from upgrade_manager.kube.event_correlator import EventCorrelator, EventSeries
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import EVENTS

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from random import Random

    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object

_log = structlog.get_logger(__name__)

#: Attempts while the API server does not respond or returns Forbidden, which it does until its roles are loaded.
MAX_ATTEMPTS = 12
#: Seconds between two attempts.
RETRY_INTERVAL = 10.0
#: Series that wait to be sent; more are dropped.
QUEUE_SIZE = 1000


class EventRecorder:
    """Records core/v1 Events of one component; repetitions increase the count of the first one, also after a restart.

    It needs only the permissions to create and patch Events. `record` never blocks and never raises; `run` sends until
    cancelled; `flush` waits until all are sent.
    """

    def __init__(
        self,
        client: Client,
        *,
        component: str,
        now: Callable[[], datetime],
        random: Random,
        annotations: Callable[[], dict[str, str]] = dict,
    ) -> None:
        self._client = client
        self._component = component
        self._now = now
        #: The annotations of an Event that is recorded now.
        self._annotations = annotations
        self._random = random
        self._correlator = EventCorrelator(component)
        #: Series with unsent changes, each once, in order.
        self._queue: deque[EventSeries] = deque()
        self._arrived = asyncio.Event()
        #: Set while the queue is empty and nothing is being sent.
        self._idle = asyncio.Event()
        self._idle.set()

    def record(
        self, about: Object, *, type_: str, reason: str, message: str, name: str = "", is_known: bool = False
    ) -> None:
        """Record an Event about an object. `type_` is Normal or Warning.

        An Event with a `name` exists exactly once, even if several processes record it; it is not counted, combined or
        rate-limited. One that `is_known` is created only if the earlier process that knew it has not: it may have died
        before it sent the Event.
        """
        now = self._now()
        series = EventSeries(
            name=name,
            about=_reference(about),
            type=type_,
            reason=reason,
            message=message,
            first=now,
            last=now,
            count=0 if is_known else 1,
            is_named=bool(name),
            annotations=self._annotations(),
        )
        correlator = self._correlator
        known = correlator.record_once(series) if name else correlator.count(series, time=loop_time())
        if known is not None and known not in self._queue:
            self._enqueue(known)

    async def run(self) -> NoReturn:
        """Send recorded Events until cancelled."""
        while True:
            while not self._queue:
                self._idle.set()
                self._arrived.clear()
                await self._arrived.wait()
            series = self._queue.popleft()
            try:
                await self._send(series)
            except (Transient, Throttled, Forbidden) as error:
                await self._retry(series, error)
            except KubeError as error:
                _log.warning("event refused", event_name=series.name, reason=series.reason, error=str(error))
            else:
                series.failures = 0

    async def flush(self, timeout: float) -> bool:  # noqa: ASYNC109  # returned, not raised
        """Wait until everything recorded so far is sent; False after `timeout` seconds."""
        try:
            async with asyncio.timeout(timeout):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True

    def _enqueue(self, series: EventSeries) -> None:
        if len(self._queue) >= QUEUE_SIZE and not series.is_named:
            _log.warning("event dropped, queue is full", reason=series.reason, waiting=len(self._queue))
            return
        self._queue.append(series)
        self._idle.clear()
        self._arrived.set()

    async def _send(self, series: EventSeries) -> None:
        if not series.is_stored and (await self._create(series) or not series.count):
            return
        try:
            if not series.is_stored:
                # Stored by an earlier process: the response to this patch has its count.
                stored = await self._patch(series, series.latest())
                if not series.resume(stored):
                    return
            await self._patch(series, {**series.latest(), "count": series.total})
        except NotFound:
            # Events expire after an hour.
            await self._create(series)

    async def _patch(self, series: EventSeries, body: Object) -> Object:
        return await self._client.patch(EVENTS, series.name, MergePatch(body), namespace=series.namespace)

    async def _create(self, series: EventSeries) -> bool:
        """Create the Event; return True if nothing is left to send."""
        series.is_stored = False
        try:
            await self._client.create(EVENTS, series.to_event(self._component))
        except AlreadyExists:
            if not series.is_named:
                return False
        series.is_stored = True
        series.count = max(1, series.count)
        return True

    async def _retry(self, series: EventSeries, error: KubeError) -> None:
        series.failures += 1
        if series.failures >= MAX_ATTEMPTS and (not series.is_named or isinstance(error, Forbidden)):
            _log.warning("event dropped after failed attempts", reason=series.reason, error=str(error))
            series.failures = 0
        elif series not in self._queue:
            self._queue.append(series)
        await asyncio.sleep(self._random.uniform(RETRY_INTERVAL, 1.2 * RETRY_INTERVAL))


def _reference(about: Object) -> Object:
    """Return the fields for involvedObject, so that the object itself is not kept."""
    fields = ("name", "namespace", "uid", "resourceVersion")
    meta = {key: value for key, value in objects.metadata(about).items() if key in fields}
    return {"apiVersion": about.get("apiVersion"), "kind": about.get("kind"), "metadata": meta}
