"""Transports around another one: the base of those that change, count or refuse requests, and one that delays them."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager
    from random import Random

    from upgrade_manager.kube.transport import Request, Response, Stream, Transport


class Forwarding:
    """A `Transport` that passes requests and streams to another one; subclasses override what they change."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner

    def outgoing(self, request: Request) -> Request:
        """Return the request that is passed on."""
        return request

    async def send(self, request: Request) -> Response:
        """Pass on a request. Raises Transient."""
        return await self._inner.send(self.outgoing(request))

    def open(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        """Pass on a request whose response is a stream. Raises Transient."""
        return self._inner.open(self.outgoing(request))


class SlowTransport(Forwarding):
    """Adds a network's latency in the loop's time, random per request and reproducible from a seed."""

    def __init__(self, inner: Transport, *, random: Random, least: float, most: float) -> None:
        super().__init__(inner)
        self._random = random
        self._least = least
        self._most = most

    async def send(self, request: Request) -> Response:
        """Send a request with latency."""
        await self._pause()
        response = await super().send(request)
        await self._pause()
        return response

    @asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[Stream]:
        """Open a stream with latency; its chunks are not delayed."""
        await self._pause()
        async with super().open(request) as stream:
            yield stream

    async def _pause(self) -> None:
        await asyncio.sleep(self._random.uniform(self._least, self._most) / 2)
