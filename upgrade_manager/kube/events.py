"""Events for `kubectl describe`: told of in passing, sent in the background, lost rather than waited for."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, NoReturn

import structlog

from upgrade_manager.kube import objects
from upgrade_manager.kube.clock import loop_time
from upgrade_manager.kube.errors import AlreadyExists, Forbidden, KubeError, NotFound, Throttled, Transient
from upgrade_manager.kube.event_correlator import Correlator, Series, body, latest, progress, take_up
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import EVENTS

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from random import Random

    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object

_log = structlog.get_logger(__name__)

#: Attempts to reach an API server that does not answer or forbids, and seconds between two. One that has just started
#: forbids everything until it knows its roles.
TRIES = 12
PAUSE = 10.0
#: Series that wait to be sent; further ones are dropped.
WAITING = 1000


class EventRecorder:
    """Records core/v1 Events of one component; repetitions only raise the count of the first (eventseries.py).

    That holds over restarts, too, for as long as the API server keeps the first, and needs the rights to create and to
    patch Events only: which there are is never asked.

    `record` never blocks and never raises. `run` sends until cancelled; before that, `flush` waits for what is open.
    """

    def __init__(self, client: Client, *, component: str, now: Callable[[], datetime], random: Random) -> None:
        self._client = client
        self._component = component
        self._now = now
        self._random = random
        self._correlator = Correlator(component)
        #: Series with something unsent, each once, in order.
        self._waiting: deque[Series] = deque()
        self._arrived = asyncio.Event()
        #: Set while nothing waits and nothing is being sent.
        self._idle = asyncio.Event()
        self._idle.set()

    def record(self, about: Object, *, type_: str, reason: str, message: str, name: str = "") -> None:
        """Something happened to an object. `type_` is Normal or Warning.

        A `name` of the caller's makes it exactly-once: the API server keeps one Event of that name, whoever sends it
        and however often; it is neither counted, combined nor cut.
        """
        now = self._now()
        series = Series(
            name=name,
            about=_reference(about),
            type=type_,
            reason=reason,
            message=message,
            first=now,
            last=now,
            fixed=bool(name),
        )
        time = loop_time()
        known = self._correlator.named(series) if name else self._correlator.counted(series, time=time)
        if known is not None and known not in self._waiting:
            self._enqueue(known)

    async def run(self) -> NoReturn:
        """Send what is recorded, until cancelled."""
        while True:
            while not self._waiting:
                self._idle.set()
                self._arrived.clear()
                await self._arrived.wait()
            series = self._waiting.popleft()
            try:
                await self._send(series)
            except (Transient, Throttled, Forbidden) as error:
                await self._postpone(series, error)
            except KubeError as error:
                _log.warning("event refused", event_name=series.name, reason=series.reason, error=str(error))
            else:
                series.failures = 0

    async def flush(self, timeout: float) -> bool:  # noqa: ASYNC109  # an answer, not an error
        """Wait until everything recorded so far is sent, for so many seconds at most; whether it is."""
        try:
            async with asyncio.timeout(timeout):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True

    def _enqueue(self, series: Series) -> None:
        if len(self._waiting) >= WAITING and not series.fixed:
            _log.warning("event dropped", reason=series.reason, waiting=len(self._waiting))
            return
        self._waiting.append(series)
        self._idle.clear()
        self._arrived.set()

    async def _send(self, series: Series) -> None:
        if not series.stored and await self._create(series):
            return
        place = objects.namespace(series.about) or "default"
        try:
            if not series.stored:
                # An earlier process has said it: the answer to what is new about it tells how often.
                known = await self._client.patch(EVENTS, series.name, MergePatch(latest(series)), namespace=place)
                if not take_up(series, known):
                    return
            await self._client.patch(EVENTS, series.name, MergePatch(progress(series)), namespace=place)
        except NotFound:
            # Events live for an hour: this one starts over.
            await self._create(series)

    async def _create(self, series: Series) -> bool:
        """Whether no more is to be done: it is there now, or was already and must not be counted."""
        series.stored = False
        try:
            await self._client.create(EVENTS, body(series, self._component))
        except AlreadyExists:
            if not series.fixed:
                return False
        series.stored = True
        return True

    async def _postpone(self, series: Series, error: KubeError) -> None:
        series.failures += 1
        if series.failures >= TRIES and (not series.fixed or isinstance(error, Forbidden)):
            _log.warning("event given up", reason=series.reason, error=str(error))
            series.failures = 0
        elif series not in self._waiting:
            self._waiting.append(series)
        await asyncio.sleep(self._random.uniform(PAUSE, 1.2 * PAUSE))


def _reference(about: Object) -> Object:
    """What an Event needs of its object, so that the object itself is not kept."""
    wanted = ("name", "namespace", "uid", "resourceVersion")
    meta = {key: value for key, value in objects.metadata(about).items() if key in wanted}
    return {"apiVersion": about.get("apiVersion"), "kind": about.get("kind"), "metadata": meta}
