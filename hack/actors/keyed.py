"""The loop under every actor: keys go in, each is looked at as often as something about it may have changed."""

from __future__ import annotations

import asyncio
import heapq
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from upgrade_manager.kube.errors import Conflict, KubeError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from random import Random

K = TypeVar("K")
#: What a look at a key ends with: seconds until the next look, or nothing: when it changes.
Later: TypeAlias = float | None

_FIRST_RETRY = 0.02
_LAST_RETRY = 5.0


class KeyedLoop(Generic[K]):
    """Calls `look(key)` for each added key, never twice at once for the same key, `workers` keys at a time.

    A KubeError is an ordinary thing: the key comes back with backoff. Anything else is a mistake of ours and ends it.
    """

    def __init__(self, name: str, look: Callable[[K], Awaitable[Later]], *, random: Random, workers: int = 64) -> None:
        self._name = name
        self._look = look
        self._random = random
        self._workers = workers
        #: When each waiting key is due; the heap may hold older entries, which count for nothing.
        self._due: dict[K, float] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._sequence = 0
        #: Keys being looked at; True when they changed meanwhile.
        self._busy: dict[K, bool] = {}
        self._failures: dict[K, int] = {}
        self._wake = asyncio.Event()

    def add(self, key: K, *, after: float = 0.0) -> None:
        """Look at the key in so many seconds, or sooner if that was planned already."""
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

    async def run(self) -> None:
        """For ever, until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                self._wake.clear()
                await self._wait(self._start_due(group))

    async def _wait(self, seconds: float | None) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return

    def _start_due(self, group: asyncio.TaskGroup) -> float | None:
        """Start what is due; the seconds until the next is, nothing when none waits or no worker is free."""
        now = asyncio.get_running_loop().time()
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
            later = await self._look(key)
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
