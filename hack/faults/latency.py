"""Network latency in virtual time, random per request and reproducible from a seed."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from random import Random

    from upgrade_manager.kube.transport import Request, Response, Stream, Transport


class SlowTransport:
    """A `Transport` that delays requests and responses."""

    def __init__(self, inner: Transport, *, random: Random, least: float, most: float) -> None:
        self._inner = inner
        self._random = random
        self._least = least
        self._most = most

    async def send(self, request: Request) -> Response:
        """Send a request with latency."""
        await self._pause()
        response = await self._inner.send(request)
        await self._pause()
        return response

    @asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[Stream]:
        """Open a stream with latency; its chunks are not delayed."""
        await self._pause()
        async with self._inner.open(request) as stream:
            yield stream

    async def _pause(self) -> None:
        await asyncio.sleep(self._random.uniform(self._least, self._most) / 2)
