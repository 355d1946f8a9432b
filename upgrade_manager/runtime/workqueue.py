"""A keyed work queue (client-go's util/workqueue): each key is queued at most once and never given to two workers.

controller.py takes keys from it; pipeline/controller.py adds them.

Two differences to client-go: `add` replaces a pending delayed add of the key, and a drain also waits for queued keys.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from typing import TYPE_CHECKING

from upgrade_manager.kube.clock import loop_time

if TYPE_CHECKING:
    from random import Random

    from upgrade_manager.runtime.metrics import Metrics

#: Avoids a float overflow; 2 to this power exceeds any useful delay.
_MAX_EXPONENT = 64


class ShutDown(Exception):
    """The queue is shut down and empty."""


class ItemExponentialFailureRateLimiter:
    """Delays a key by `base_delay`·2ⁿ seconds after n earlier failures, at most by `max_delay`.

    Each delay is extended by up to `jitter` times itself, so that retries spread out.
    """

    def __init__(self, *, base_delay: float, max_delay: float, jitter: float, random: Random) -> None:
        self._base_delay = base_delay
        self._max_delay = max_delay
        self._jitter = jitter
        self._random = random
        #: Keys with at least one failure.
        self._failures: dict[str, int] = {}

    def when(self, key: str) -> float:
        """Count a failure of the key and return the seconds to wait."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        delay = min(self._base_delay * 2.0 ** min(failures, _MAX_EXPONENT), self._max_delay)
        return delay * (1 + self._jitter * self._random.random())

    def forget(self, key: str) -> None:
        """Reset the failures of the key."""
        self._failures.pop(key, None)

    def num_requeues(self, key: str) -> int:
        """Failures of the key since `forget`."""
        return self._failures.get(key, 0)


class WorkQueue:
    """Keys that need a reconcile, in the order in which they became ready. All methods need the running event loop.

    Any number of adds while a key is being processed leads to one further run.
    """

    def __init__(self, name: str, *, limiter: ItemExponentialFailureRateLimiter, metrics: Metrics) -> None:
        self.name = name
        self._limiter = limiter
        self._metrics = metrics.queue(name)
        #: Ready keys, oldest first, with the loop time since which each is ready; in no other collection.
        self._ready: OrderedDict[str, float] = OrderedDict()
        #: Keys being processed, with the loop time at which each run started.
        self._processing: dict[str, float] = {}
        #: Keys added while being processed, which become ready when done; not in `_timers`.
        self._dirty: set[str] = set()
        #: Keys with a delayed add.
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._is_shut_down = False
        #: Wakes waiting workers.
        self._changed = asyncio.Event()
        #: Set when the queue is shut down and has neither ready nor processing keys.
        self._drained = asyncio.Event()
        metrics.on_scrape(self._update_metrics)

    def add(self, key: str) -> None:
        """Make the key ready now, or after its current run. Replaces its delayed add; ignored after shutdown."""
        if self._is_shut_down:
            return
        if timer := self._timers.pop(key, None):
            timer.cancel()
        if key in self._ready or key in self._dirty:
            return
        self._metrics.adds.inc()
        if key in self._processing:
            self._dirty.add(key)
        else:
            self._push(key)

    def add_after(self, key: str, seconds: float) -> None:
        """Add the key in so many seconds; the earlier of two adds wins."""
        if seconds <= 0:
            self.add(key)
            return
        if self._is_shut_down:
            return
        self._metrics.retries.inc()
        if key in self._ready or key in self._dirty:
            return
        due = loop_time() + seconds
        if timer := self._timers.get(key):
            if timer.when() <= due:
                return
            timer.cancel()
        self._timers[key] = asyncio.get_running_loop().call_at(due, self.add, key)

    def add_rate_limited(self, key: str) -> None:
        """Count a failure of the key and add it after the rate limiter's delay."""
        self.add_after(key, self._limiter.when(key))

    def forget(self, key: str) -> None:
        """Reset the failures of the key. Its pending adds remain, and `done` is still required."""
        self._limiter.forget(key)

    def num_requeues(self, key: str) -> int:
        """Failures of the key since `forget`."""
        return self._limiter.num_requeues(key)

    async def get(self) -> str:
        """Wait for the next key, which belongs to the caller until `done`. Raises ShutDown."""
        while not self._ready:
            if self._is_shut_down:
                raise ShutDown
            self._changed.clear()
            await self._changed.wait()
        key, since = self._ready.popitem(last=False)
        now = loop_time()
        self._processing[key] = now
        self._metrics.depth.set(len(self._ready))
        self._metrics.queue_duration.observe(now - since)
        return key

    def done(self, key: str) -> None:
        """End the run of a key from `get`. Raises KeyError for a key that is not being processed."""
        self._metrics.work_duration.observe(loop_time() - self._processing.pop(key))
        if key in self._dirty:
            self._dirty.remove(key)
            self._push(key)
        self._check_drained()

    def longest_run(self) -> float:
        """Seconds since the oldest current run started; 0 without one."""
        return loop_time() - min(self._processing.values()) if self._processing else 0.0

    def shut_down(self) -> None:
        """Ignore new adds and drop delayed ones. Workers get the queued keys, then ShutDown."""
        self._is_shut_down = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._changed.set()
        self._check_drained()

    async def shut_down_with_drain(self, seconds: float) -> bool:
        """Shut down and wait, for at most so many seconds, until all queued keys are done. True when they are."""
        self.shut_down()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._drained.wait()
        return self._drained.is_set()

    def _push(self, key: str) -> None:
        self._ready[key] = loop_time()
        self._metrics.depth.set(len(self._ready))
        self._changed.set()

    def _check_drained(self) -> None:
        if self._is_shut_down and not self._ready and not self._processing:
            self._drained.set()

    def _update_metrics(self) -> None:
        now = loop_time()
        self._metrics.unfinished_work.set(sum(now - started for started in self._processing.values()))
        self._metrics.longest_running_processor.set(self.longest_run())
