"""A wire in virtual time: every request takes a little, a different little for every seed."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from random import Random

    from upgrade_manager.kube.transport import Request, Response, Stream, Transport


class SlowTransport:
    """A `Transport` in front of another one; half of the time goes there, half of it back."""

    def __init__(self, inner: Transport, *, random: Random, least: float, most: float) -> None:
        self._inner = inner
        self._random = random
        self._least = least
        self._most = most

    async def send(self, request: Request) -> Response:
        """Pass a request on, and its answer back."""
        await self._pause()
        response = await self._inner.send(request)
        await self._pause()
        return response

    @asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[Stream]:
        """Pass a request on; what then streams is not held up."""
        await self._pause()
        async with self._inner.open(request) as stream:
            yield stream

    async def _pause(self) -> None:
        await asyncio.sleep(self._random.uniform(self._least, self._most) / 2)
