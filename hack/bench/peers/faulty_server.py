"""An embedded API server behind a socket that can be stopped, refuse requests, and break the watches of its clients."""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum, auto
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from hack.apiserver.call import call_of
from hack.apiserver.status import StatusError, expired
from hack.apiserver.streams import ChunkStream, WholeStream
from hack.apiserver.watch import error_line
from hack.bench.peers.discovery import Discovery
from hack.bench.peers.requests import BENCH, RESOURCE, RecordedRequests
from hack.bench.peers.servers import Server, embedded_server, write_account
from hack.bench.recorder import Recorder
from hack.cluster.gateway import Gateway
from hack.control_plane.certificates import Authority, server_context
from upgrade_manager.kube.client import Client

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Awaitable

    from hack.apiserver.server import ApiServer
    from upgrade_manager.kube.transport import Request, Response, Stream


class Break(Enum):
    """The ways in which an open watch breaks."""

    #: It ends properly, as after the server's time-out.
    END = auto()
    #: It ends with 410 as an event.
    EXPIRED = auto()
    #: It stays open, and brings nothing any more.
    SILENCE = auto()


@dataclass(slots=True)
class Faults:
    """The faults of a server, as a `Transport` around it. Only watches of the benchmark's resource break."""

    server: ApiServer
    #: Every request gets this response.
    refusal: StatusError | None = None
    #: Watches from this version or an older one get 410, as an event or as the response's status.
    compacted: int = 0
    expired_as_event: bool = False
    _open: set[_Breakable] = field(default_factory=set)

    def break_watches(self, how: Break) -> None:
        """Break the watches that are open; those in silence may still end."""
        for watch in self._open:
            watch.break_off(how)

    async def send(self, request: Request) -> Response:
        """Send a request that is not a watch."""
        return self.refusal.response() if self.refusal else await self.server.send(request)

    @asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[Stream]:
        """Open a stream."""
        call = call_of(request)
        if self.refusal or call.verb != "watch":
            yield WholeStream(await self.send(request))
            return
        if call.resource != RESOURCE:
            async with self.server.open(request) as stream:
                yield stream
            return
        is_expired = 0 < int(dict(request.query).get("resourceVersion") or 0) <= self.compacted
        if is_expired and not self.expired_as_event:
            yield WholeStream(_expired().response())
            return
        async with self.server.open(request) as stream:
            watch = _Breakable(stream)
            if is_expired:
                watch.break_off(Break.EXPIRED)
            self._open.add(watch)
            try:
                yield ChunkStream(watch, status=stream.status, headers=stream.headers)
            finally:
                self._open.discard(watch)


class _Breakable:
    """The chunks of a watch until it breaks."""

    def __init__(self, stream: Stream) -> None:
        self._chunks = stream.chunks()
        self._how: Break | None = None
        self._broken = asyncio.Event()

    def break_off(self, how: Break) -> None:
        """Bring no more chunks of the server."""
        self._how = how
        self._broken.set()

    async def next(self) -> bytes | None:
        """Return the next chunk, as Pieces defines."""
        if self._how is None:
            chunk = await self._until_broken(anext(self._chunks, None))
            if self._how is None:
                return chunk
        while self._how is Break.SILENCE:
            self._broken.clear()
            await self._broken.wait()
        is_expired, self._how = self._how is Break.EXPIRED, Break.END
        return error_line(_expired()) if is_expired else None

    async def _until_broken(self, next_chunk: Awaitable[bytes | None]) -> bytes | None:
        """Return the chunk, or None when the watch breaks first."""
        chunk, broken = asyncio.ensure_future(next_chunk), asyncio.ensure_future(self._broken.wait())
        try:
            await asyncio.wait({chunk, broken}, return_when=asyncio.FIRST_COMPLETED)
            return chunk.result() if chunk.done() else None
        finally:
            # Without effect on one that is done.
            chunk.cancel()
            broken.cancel()


def _expired() -> StatusError:
    return expired("too old resource version")


@dataclass(slots=True, kw_only=True)
class FaultyServer:
    """A server with one controller."""

    server: Server
    faults: Faults
    _discovery: Discovery
    _tls: ssl.SSLContext
    _gateway: Gateway

    async def stop(self) -> None:
        """Close all connections, and refuse new ones."""
        await self._gateway.__aexit__(None, None, None)

    async def start(self) -> None:
        """Listen again, on the same port."""
        self._gateway = Gateway(self._discovery, tls=self._tls, port=self._gateway.port)
        await self._gateway.__aenter__()


@asynccontextmanager
async def faulty_server() -> AsyncIterator[FaultyServer]:
    """Serve an embedded server; the benchmark's own requests avoid its faults."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="upgrade-bench-")))
        inner = embedded_server()
        faults = Faults(inner)
        recorder = Recorder(faults)
        authority = Authority(now=datetime.now(UTC))
        tls = server_context(authority.server(), folder)
        discovery = Discovery(recorder)
        gateway = Gateway(discovery, tls=tls)
        await gateway.__aenter__()
        write_account(folder, authority=authority.certificate)
        client = Client(inner, user_agent=BENCH, random=Random(0))
        server = Server(url=gateway.url, account=folder, client=client, requests=RecordedRequests(recorder))
        found = FaultyServer(server=server, faults=faults, _discovery=discovery, _tls=tls, _gateway=gateway)
        try:
            yield found
        finally:
            await found.stop()
