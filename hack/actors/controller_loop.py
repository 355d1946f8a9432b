"""The reconcile loop of every actor, and its timers."""

from __future__ import annotations

import asyncio
import heapq
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from upgrade_manager.kube.errors import Conflict, KubeError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable
    from random import Random

K = TypeVar("K")
#: The result of a reconcile: seconds until the next one, or None to wait for a change.
RequeueAfter: TypeAlias = float | None

_FIRST_RETRY = 0.02
_LAST_RETRY = 5.0
#: Keys that are reconciled at a time.
WORKERS = 64


def _never() -> bool:
    return False


class ControllerLoop(Generic[K]):
    """Calls `reconcile(key)` for each added key, once at a time per key and for `workers` keys at a time.

    A KubeError requeues the key with backoff. Any other error is a bug of the actor and ends the loop. While
    `is_frozen` returns True, no reconcile starts; `wake` must be called when that changes.
    """

    def __init__(
        self,
        name: str,
        reconcile: Callable[[K], Awaitable[RequeueAfter]],
        *,
        random: Random,
        workers: int = WORKERS,
        is_frozen: Callable[[], bool] = _never,
    ) -> None:
        self._name = name
        self._reconcile = reconcile
        self._random = random
        self._workers = workers
        self._is_frozen = is_frozen
        #: The time at which each waiting key is due; older entries in the heap are ignored.
        self._due: dict[K, float] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._sequence = 0
        #: Keys that are being reconciled; True when they changed meanwhile.
        self._busy: dict[K, bool] = {}
        self._failures: dict[K, int] = {}
        self._wake = asyncio.Event()

    def add(self, key: K, *, after: float = 0.0) -> None:
        """Requeue the key after so many seconds, or keep an earlier requeue."""
        if key in self._busy and after <= 0:
            self._busy[key] = True
            return
        due = asyncio.get_running_loop().time() + max(0.0, after)
        if key in self._due and self._due[key] <= due:
            return
        self._due[key] = due
        self._sequence += 1
        heapq.heappush(self._heap, (due, self._sequence, key))
        self._wake.set()

    def wake(self) -> None:
        """Check the waiting keys again."""
        self._wake.set()

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                self._wake.clear()
                await self._wait(self._start_due(group))

    async def _wait(self, seconds: float | None) -> None:
        if seconds is None:
            await self._wake.wait()
            return
        timer = asyncio.get_running_loop().call_later(seconds, self._wake.set)
        try:
            await self._wake.wait()
        finally:
            timer.cancel()

    def _start_due(self, group: asyncio.TaskGroup) -> float | None:
        """Start the keys that are due and return the seconds until the next one, if one waits and a worker is free."""
        now = asyncio.get_running_loop().time()
        if self._is_frozen():
            return None
        while self._heap and len(self._busy) < self._workers:
            due, _, key = self._heap[0]
            if self._due.get(key) != due:
                heapq.heappop(self._heap)
                continue
            if due > now:
                return due - now
            heapq.heappop(self._heap)
            del self._due[key]
            if key in self._busy:
                self._busy[key] = True
                continue
            self._busy[key] = False
            group.create_task(self._work(key), name=f"{self._name} {key}")
        return None

    async def _work(self, key: K) -> None:
        try:
            later = await self._reconcile(key)
            self._failures.pop(key, None)
        except KubeError as error:
            later = self._retry_after(key, error)
        changed = self._busy.pop(key)
        self._wake.set()
        if changed:
            self.add(key)
        if later is not None:
            self.add(key, after=later)

    def _retry_after(self, key: K, error: KubeError) -> float:
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        cap = _FIRST_RETRY * 10 if isinstance(error, Conflict) else _LAST_RETRY
        return min(cap, _FIRST_RETRY * 2.0 ** min(failures, 16)) * self._random.uniform(1.0, 2.0)


class Timers:
    """Deadlines by owner and name, on the loop's clock.

    An actor reads the remaining time at each reconcile and proceeds at zero.
    """

    def __init__(self) -> None:
        self._ends: dict[str, dict[Hashable, float]] = {}

    def left(self, owner: str, what: Hashable, seconds: float) -> float:
        """Return the seconds left of the owner's timer; the first call starts it with that length."""
        now = asyncio.get_running_loop().time()
        end = self._ends.setdefault(owner, {}).setdefault(what, now + seconds)
        return max(0.0, end - now)

    def stop(self, owner: str, what: Hashable) -> None:
        """Remove one timer; the next read starts it again."""
        self._ends.get(owner, {}).pop(what, None)

    def forget(self, owner: str) -> None:
        """Remove all timers of a deleted owner."""
        self._ends.pop(owner, None)
