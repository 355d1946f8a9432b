"""The queue between what happened and who deals with it: keys only, each at most once, never to two workers.

The contract is client-go's (util/workqueue): N adds while a key is worked on cost exactly one further run. Three
things are different on purpose: an immediate `add` absorbs the key's pending delayed one, a drain waits for queued
work too, and low-priority keys age instead of starving.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from upgrade_manager.kube.clock import loop_time
from upgrade_manager.runtime.delays import Delays
from upgrade_manager.runtime.lanes import Lanes, Priority

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from upgrade_manager.runtime.rate_limiter import RateLimiter

K = TypeVar("K", bound="Hashable")


class ShutDown(Exception):
    """The queue is shut down and empty: the worker may go home."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """A queue at one moment; times in seconds."""

    ready: int
    delayed: int
    processing: int
    #: Workers that wait for a key.
    idle_workers: int
    #: How long the key that is ready longest has waited.
    oldest_ready: float
    #: How long the longest run has been going on.
    longest_run: float
    #: The sum over all runs going on.
    unfinished: float


class QueueMetrics(Protocol):
    """Who wants to know; `NoQueueMetrics` when nobody does."""

    def watch(self, statistics: Callable[[], Statistics]) -> None:
        """Called once, with what to ask for the state at any moment, on the queue's loop."""
        ...

    def depth(self, priority: Priority, keys: int) -> None:
        """So many keys of the class are ready."""
        ...

    def added(self) -> None:
        """A key needs work that did not before."""
        ...

    def retried(self) -> None:
        """A key was put off by a positive delay."""
        ...

    def waited(self, seconds: float) -> None:
        """A worker got a key that had been ready for so long."""
        ...

    def worked(self, seconds: float) -> None:
        """A run ended after so long."""
        ...


class NoQueueMetrics:
    """Keeps nothing."""

    def watch(self, statistics: Callable[[], Statistics]) -> None:
        """Keep nothing."""

    def depth(self, priority: Priority, keys: int) -> None:
        """Keep nothing."""

    def added(self) -> None:
        """Keep nothing."""

    def retried(self) -> None:
        """Keep nothing."""

    def waited(self, seconds: float) -> None:
        """Keep nothing."""

    def worked(self, seconds: float) -> None:
        """Keep nothing."""


UNMEASURED = NoQueueMetrics()


@dataclass(frozen=True, slots=True)
class _Run:
    """A key that a worker has."""

    started: float
    priority: Priority


class WorkQueue(Generic[K]):
    """A keyed queue for the workers of one controller, all in one event loop; every method needs that loop running.

    `limiter` decides the waits of `add_rate_limited`. A low-priority key is overtaken for at most `aging` seconds.
    """

    def __init__(
        self,
        name: str,
        *,
        limiter: RateLimiter[K],
        metrics: QueueMetrics = UNMEASURED,
        aging: float = 30.0,
    ) -> None:
        self.name = name
        self._limiter = limiter
        self._metrics = metrics
        #: Keys to hand out; each is in neither `_processing` nor `_again` nor `_delays`.
        self._ready: Lanes[K] = Lanes(aging=aging)
        #: Keys that workers have.
        self._processing: dict[K, _Run] = {}
        #: Keys in `_processing` that were added since: ready again when done. None of them is in `_delays`.
        self._again: dict[K, Priority] = {}
        #: Keys that become ready later. None of them is ready.
        self._delays: Delays[K] = Delays()
        #: Fires at the time of the first of `_delays`; None when that is empty.
        self._timer: asyncio.TimerHandle | None = None
        #: Workers that wait, longest first. Whoever is woken and cannot come wakes the next.
        self._waiting: deque[asyncio.Future[None]] = deque()
        #: Drains that wait for the last key.
        self._drains: list[asyncio.Future[bool]] = []
        self._closed = False
        self._metrics.watch(self.statistics)

    def __len__(self) -> int:
        """Keys that are ready."""
        return len(self._ready)

    @property
    def shutting_down(self) -> bool:
        """Whether adds are dropped."""
        return self._closed

    def statistics(self) -> Statistics:
        """The state now."""
        now = loop_time()
        runs = [now - run.started for run in self._processing.values()]
        oldest = self._ready.oldest()
        return Statistics(
            ready=len(self._ready),
            delayed=len(self._delays),
            processing=len(self._processing),
            idle_workers=len(self._waiting),
            oldest_ready=0.0 if oldest is None else now - oldest,
            longest_run=max(runs, default=0.0),
            unfinished=sum(runs),
        )

    def add(self, key: K, *, priority: int = Priority.NORMAL) -> None:
        """The key needs work now; its pending delayed add is absorbed. Dropped after shut-down."""
        if self._closed:
            return
        pending = self._delays.discard(key)
        self._arm()
        self._need(key, max(Priority.of(priority), Priority.LOW if pending is None else pending))

    def add_after(self, key: K, seconds: float, *, priority: int | None = None) -> None:
        """The key needs work so many seconds from now, or when it was going to get it anyway, if that is earlier.

        Without a priority it keeps that of the run which is going on, so that a retry of low work stays low.
        """
        wanted = self._priority_of(key) if priority is None else Priority.of(priority)
        if seconds > 0 and not self._closed:
            self._metrics.retried()
        if seconds <= 0:
            self.add(key, priority=wanted)
        elif not self._closed and key not in self._ready and key not in self._again:
            self._delays.put(key, due=loop_time() + seconds, priority=wanted)
            self._arm()

    def add_rate_limited(self, key: K, *, priority: int | None = None) -> None:
        """The key failed and needs work after the limiter's wait."""
        self.add_after(key, self._limiter.when(key), priority=priority)

    def forget(self, key: K) -> None:
        """Clear the key's failures; nothing that is queued goes away, and `done` is still due."""
        self._limiter.forget(key)

    def num_requeues(self, key: K) -> int:
        """Failures of the key since it was last forgotten."""
        return self._limiter.num_requeues(key)

    async def get(self) -> K:
        """Wait for the next key; the caller has it alone until `done`. Raises ShutDown."""
        while not self._ready:
            if self._closed:
                raise ShutDown(f"queue {self.name} is shut down")
            await self._wait()
        key, priority, place = self._ready.pop()
        now = loop_time()
        self._processing[key] = _Run(now, priority)
        self._metrics.depth(priority, self._ready.depth(priority))
        self._metrics.waited(now - place.since)
        return key

    def done(self, key: K) -> None:
        """End the run of a key from `get`; ready again if it was added meanwhile. Raises ValueError for other keys."""
        run = self._processing.pop(key, None)
        if run is None:
            raise ValueError(f"queue {self.name}: done() for {key!r}, which no worker has")
        self._metrics.worked(loop_time() - run.started)
        priority = self._again.pop(key, None)
        if priority is not None:
            self._push(key, priority)
        elif self._closed:
            self._settle()

    def shut_down(self) -> None:
        """Drop new adds and pending delayed ones; workers get what is queued, then ShutDown.

        A second call breaks the wait of `shut_down_with_drain`.
        """
        if self._closed:
            self._release(drained=False)
        self._close()

    async def shut_down_with_drain(self, deadline: float) -> bool:
        """Shut down and wait until all that was queued has been worked on and is done, for `deadline` seconds at most.

        True when it has; False when the time is up or a second `shut_down` broke the wait.
        """
        self._close()
        if self._empty():
            return True
        drain = asyncio.get_running_loop().create_future()
        self._drains.append(drain)
        try:
            async with asyncio.timeout(deadline):
                return bool(await drain)
        except TimeoutError:
            return False
        finally:
            self._drains.remove(drain)

    def _priority_of(self, key: K) -> Priority:
        run = self._processing.get(key)
        return Priority.NORMAL if run is None else run.priority

    def _need(self, key: K, priority: Priority) -> None:
        if key in self._processing:
            if key not in self._again:
                self._metrics.added()
            self._again[key] = max(priority, self._again.get(key, Priority.LOW))
        elif key not in self._ready:
            self._metrics.added()
            self._push(key, priority)
        elif priority is Priority.NORMAL and self._ready.promote(key, now=loop_time()):
            self._report_depths()

    def _push(self, key: K, priority: Priority) -> None:
        self._ready.push(key, priority=priority, now=loop_time())
        self._metrics.depth(priority, self._ready.depth(priority))
        self._wake()

    def _report_depths(self) -> None:
        for priority in Priority:
            self._metrics.depth(priority, self._ready.depth(priority))

    async def _wait(self) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if not waiter.cancelled() and self._ready:
                self._wake()
            raise
        finally:
            if waiter in self._waiting:
                self._waiting.remove(waiter)

    def _wake(self) -> None:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def _arm(self) -> None:
        due = self._delays.next_due()
        if self._timer is not None:
            if self._timer.when() == due:
                return
            self._timer.cancel()
            self._timer = None
        if due is not None:
            self._timer = asyncio.get_running_loop().call_at(due, self._fire, due)

    def _fire(self, due: float) -> None:
        self._timer = None
        # A loop may fire a timer early by its clock's resolution: what was due by the timer is due.
        for key, priority in self._delays.pop_due(max(due, loop_time())):
            self._need(key, priority)
        self._arm()

    def _close(self) -> None:
        self._closed = True
        self._delays.clear()
        self._arm()
        while self._waiting:
            self._wake()

    def _empty(self) -> bool:
        return not self._ready and not self._processing

    def _settle(self) -> None:
        if self._empty():
            self._release(drained=True)

    def _release(self, *, drained: bool) -> None:
        for drain in self._drains:
            if not drain.done():
                drain.set_result(drained)
