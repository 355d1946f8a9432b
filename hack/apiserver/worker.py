"""A work queue with a loop, on which the server's controllers run."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Generic, TypeVar

from hack.apiserver.status import StatusError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable

K = TypeVar("K", bound="Hashable")

#: Seconds until an item is retried after an error.
RETRY_SECONDS = 1.0


class Worker(Generic[K]):
    """A queue that handles each added item once, in the order of adding, and retries errors later."""

    def __init__(self, handle: Callable[[K], Awaitable[None]]) -> None:
        self._handle = handle
        #: Item -> due time on the loop's clock; 0 for at once.
        self._due: dict[K, float] = {}
        self._waker = asyncio.Event()

    def add(self, item: K) -> None:
        """Add an item."""
        self._due[item] = 0.0
        self._waker.set()

    async def run(self) -> None:
        """Handle items until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            self._waker.clear()
            for item in [item for item, due in self._due.items() if due <= loop.time()]:
                del self._due[item]
                try:
                    await self._handle(item)
                except StatusError:
                    self._due.setdefault(item, loop.time() + RETRY_SECONDS)
            await self._rest()

    async def _rest(self) -> None:
        if self._waker.is_set():
            return
        try:
            async with asyncio.timeout_at(min(self._due.values()) if self._due else None):
                await self._waker.wait()
        except TimeoutError:
            return
