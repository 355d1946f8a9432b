"""A transport whose connections can be cut or blackholed, including open streams."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from hack.apiserver.streams import ChunkStream
from upgrade_manager.kube.errors import REFUSED, TIMED_OUT, Transient

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from upgrade_manager.kube.transport import Request, Response, Stream, Transport


class BreakableTransport:
    """A `Transport` around another one, for tests of clients without a reachable server.

    While it is silent, nothing gets through in either direction and connections stay open: requests wait for as long
    as their senders do, streams bring nothing. While it is cut, requests are refused.
    """

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self._sounds = asyncio.Event()
        self._sounds.set()
        self._is_cut = False
        #: In the order in which they were opened, and broken: the same run gives the same order.
        self._open: dict[_Pieces, None] = {}

    def hush(self) -> None:
        """Blackhole all connections: nothing arrives and nothing fails."""
        self._sounds.clear()

    def tear(self) -> None:
        """Break open streams; later requests succeed."""
        for pieces in list(self._open):
            pieces.tear()

    def cut(self) -> None:
        """Break open streams and refuse all requests."""
        self._is_cut = True
        self.tear()

    def mend(self) -> None:
        """Restore the connection; waiting requests proceed first."""
        self._is_cut = False
        self._sounds.set()

    @property
    def is_passable(self) -> bool:
        """True if a request would pass now."""
        return self._sounds.is_set() and not self._is_cut

    async def send(self, request: Request) -> Response:
        """Send the request and return its response, for which `inner` has the request's timeout. Raises Transient."""
        deadline = asyncio.get_running_loop().time() + request.timeout
        await self._passable(request, deadline)
        answer = await self._inner.send(request)
        await self._passable(request, deadline)
        return answer

    @asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[Stream]:
        """Open a stream that this transport can break. Raises Transient."""
        await self._passable(request, asyncio.get_running_loop().time() + request.timeout)
        async with self._inner.open(request) as stream:
            pieces = _Pieces(self, stream.chunks())
            self._open[pieces] = None
            try:
                yield ChunkStream(pieces, status=stream.status, headers=stream.headers)
            finally:
                self._open.pop(pieces, None)

    async def _passable(self, request: Request, deadline: float) -> None:
        if not self._sounds.is_set():
            try:
                async with asyncio.timeout_at(deadline):
                    await self._sounds.wait()
            except TimeoutError as error:
                raise _silent(request) from error
        self._refuse_if_cut()

    async def passable(self) -> None:
        """Wait while the connection is blackholed. Raises Transient when it is cut."""
        await self._sounds.wait()
        self._refuse_if_cut()

    def _refuse_if_cut(self) -> None:
        if self._is_cut:
            raise Transient("the line is cut", reason=REFUSED)


class _Pieces:
    """One open stream."""

    def __init__(self, line: BreakableTransport, chunks: AsyncIterator[bytes]) -> None:
        self._line = line
        self._chunks = chunks
        self._is_torn = False
        #: The pending read, if any.
        self._limit: asyncio.Timeout | None = None

    def tear(self) -> None:
        """Break the stream."""
        self._is_torn = True
        if self._limit is not None:
            self._limit.reschedule(asyncio.get_running_loop().time())

    async def next(self) -> bytes | None:
        """Return the next chunk, or None at the end. Raises Transient."""
        if self._is_torn:
            raise _torn()
        try:
            async with asyncio.timeout(None) as self._limit:
                piece = await anext(self._chunks, None)
                await self._line.passable()
        except TimeoutError as error:
            raise _torn() from error
        finally:
            self._limit = None
        return piece


def _torn() -> Transient:
    return Transient("the line was torn in the middle of a stream")


def _silent(request: Request) -> Transient:
    return Transient(f"{request.method} {request.path}: no answer in {request.timeout:g} s", reason=TIMED_OUT)
