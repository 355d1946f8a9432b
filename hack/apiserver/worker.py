"""A queue of things to look at, and the loop that looks: the server's own controllers run on it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Generic, TypeVar

from hack.apiserver.status import StatusError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable

K = TypeVar("K", bound="Hashable")

#: Seconds until a thing that could not be dealt with is looked at again.
RETRY_SECONDS = 1.0


class Worker(Generic[K]):
    """Looks at each thing once after it was added, in the order of adding; a refused one again later."""

    def __init__(self, handle: Callable[[K], Awaitable[None]]) -> None:
        self._handle = handle
        #: What to look at, and when, by the loop's clock; 0 for at once.
        self._due: dict[K, float] = {}
        self._waker = asyncio.Event()

    def add(self, thing: K) -> None:
        """Have a thing looked at soon."""
        self._due[thing] = 0.0
        self._waker.set()

    async def run(self) -> None:
        """Look, for ever."""
        loop = asyncio.get_running_loop()
        while True:
            self._waker.clear()
            for thing in [thing for thing, due in self._due.items() if due <= loop.time()]:
                del self._due[thing]
                try:
                    await self._handle(thing)
                except StatusError:
                    self._due.setdefault(thing, loop.time() + RETRY_SECONDS)
            await self._rest()

    async def _rest(self) -> None:
        if self._waker.is_set():
            return
        try:
            async with asyncio.timeout_at(min(self._due.values()) if self._due else None):
                await self._waker.wait()
        except TimeoutError:
            return
