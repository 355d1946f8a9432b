"""Silent, slow, idle and busy connections at a server's limit, with and without TLS."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from unittest.mock import Mock

import pytest
from aiohttp import web

from tests.support.managers.runtime import serving
from upgrade_manager.runtime import connection_limit
from upgrade_manager.runtime.cert_watcher import context_from_pem
from upgrade_manager.runtime.connection import Connection
from upgrade_manager.runtime.http_server import HttpServer, no_tls
from upgrade_manager.runtime.peers import Peers
from upgrade_manager.runtime.self_signed import make_pem

pytestmark = pytest.mark.real_loop

LIMIT = 4
REQUEST = b"GET /%s HTTP/1.1\r\nHost: test\r\n\r\n"
TIMEOUT = b"HTTP/1.1 408 Request Timeout"
INCOMPLETE_HEAD = b"GET / HTTP/1.1\r\nHost:"
#: Seconds for what a server does at once, or after a short time-out: a test that fails does not hang.
BOUND = 30.0
INCOMPLETE_BODY = b"POST /body HTTP/1.1\r\nHost: test\r\nContent-Length: 2\r\n\r\na"


async def self_signed() -> ssl.SSLContext:
    return context_from_pem(make_pem(now=datetime.now(tz=UTC)))


class Client:
    """A client's connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer

    async def get(self, path: bytes = b"") -> bytes:
        """Send a request and return the last line of the response."""
        self.writer.write(REQUEST % path)
        return await self.response()

    async def response(self) -> bytes:
        """Return the last line of a response."""
        async with asyncio.timeout(BOUND):
            head = await self._reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200 ")
            return await self._reader.readexactly(4)

    async def status(self) -> bytes:
        """Wait for a response, and until the server closes the connection; return the status line."""
        async with asyncio.timeout(BOUND):
            return (await self._reader.read()).partition(b"\r\n")[0]

    async def closed(self) -> bool:
        """Wait until the server closes the connection."""
        async with asyncio.timeout(BOUND):
            try:
                return await self._reader.read() == b""
            except OSError:
                return True


@dataclass
class Bench:
    """A server whose path `/slow` responds when `release` is set; `/body` reads a body."""

    port: int
    is_secure: bool
    arrived: asyncio.Event
    release: asyncio.Event
    connections: list[Client]

    async def connect(self) -> Client:
        """Open a connection, with a TLS handshake on a secure server."""
        tls = None
        if self.is_secure:
            tls = ssl.create_default_context()
            tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
        return await self._connect(tls)

    async def connect_silently(self) -> Client:
        """Open a TCP connection that sends nothing."""
        return await self._connect(None)

    async def _connect(self, tls: ssl.SSLContext | None) -> Client:
        self.connections.append(Client(*await asyncio.open_connection("127.0.0.1", self.port, ssl=tls)))
        return self.connections[-1]

    async def close(self) -> None:
        for connection in self.connections:
            connection.writer.transport.abort()
            await connection.closed()


@asynccontextmanager
async def bench(*, is_secure: bool) -> AsyncIterator[Bench]:
    arrived, release = asyncio.Event(), asyncio.Event()

    async def fast(_request: web.Request) -> web.Response:
        return web.Response(text="fast")

    async def slow(_request: web.Request) -> web.Response:
        arrived.set()
        await release.wait()
        return web.Response(text="slow")

    async def body(request: web.Request) -> web.Response:
        arrived.set()
        await request.read()
        return await slow(request)

    app = web.Application()
    app.router.add_get("/", fast)
    app.router.add_get("/slow", slow)
    app.router.add_post("/body", body)
    tls = self_signed if is_secure else no_tls
    server = HttpServer("test", flag="--test-bind-address", app=app, address=("127.0.0.1", 0), tls=tls)
    async with serving(server):
        clients = Bench(server.port, is_secure, arrived, release, [])
        try:
            yield clients
        finally:
            await clients.close()


@pytest.fixture(autouse=True)
def _low_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_limit, "MAX_CONNECTIONS", LIMIT)


@pytest.mark.parametrize("is_secure", [False, True], ids=["plain", "TLS"])
class TestConnectionLimit:
    async def test_oldest_silent_connections_are_closed_at_the_limit(self, *, is_secure: bool) -> None:
        async with bench(is_secure=is_secure) as server:
            silent = [await server.connect_silently() for _ in range(3 * LIMIT)]
            assert all([await connection.closed() for connection in silent[: 2 * LIMIT]])
            client = await server.connect()
            assert await client.get() == b"fast"
            assert await silent[2 * LIMIT].closed()

    async def test_burst_of_connections_is_limited(self, *, is_secure: bool) -> None:
        async with bench(is_secure=is_secure) as server:
            idle = await server.connect()
            assert await idle.get() == b"fast"
            burst = await asyncio.gather(*[server.connect_silently() for _ in range(100)])
            waits = {asyncio.create_task(connection.closed()) for connection in burst}
            while len(waits) > LIMIT:
                _, waits = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            client = await server.connect()
            assert await client.get() == b"fast"
            for wait in waits:
                wait.cancel()

    async def test_oldest_idle_connection_is_closed_at_the_limit(self, *, is_secure: bool) -> None:
        async with bench(is_secure=is_secure) as server:
            idle = []
            for _ in range(LIMIT):
                idle.append(await server.connect())
                assert await idle[-1].get() == b"fast"
            client = await server.connect()
            assert await idle[0].closed()
            assert await client.get() == b"fast"
            assert await idle[1].get() == b"fast"

    @pytest.mark.parametrize("sent", [INCOMPLETE_HEAD, INCOMPLETE_BODY], ids=["head", "body"])
    async def test_oldest_incomplete_request_is_ended_at_the_limit(self, sent: bytes, *, is_secure: bool) -> None:
        async with bench(is_secure=is_secure) as server:
            slow = []
            for _ in range(2 * LIMIT):
                slow.append(await server.connect())
                slow[-1].writer.write(sent)
            assert [await connection.status() for connection in slow[:LIMIT]] == [TIMEOUT] * LIMIT
            assert await (await server.connect()).get() == b"fast"

    async def test_busy_connections_are_kept_at_the_limit(self, *, is_secure: bool) -> None:
        async with bench(is_secure=is_secure) as server, asyncio.TaskGroup() as group:
            busy = []
            for _ in range(LIMIT // 2):
                server.arrived.clear()
                client = await server.connect()
                busy.append(group.create_task(client.get(b"slow")))
                await server.arrived.wait()
            for _ in range(LIMIT // 2):
                client = await server.connect()
                for sent in (INCOMPLETE_BODY, b"b"):
                    server.arrived.clear()
                    client.writer.write(sent)
                    await server.arrived.wait()
                busy.append(group.create_task(client.response()))
            assert await (await server.connect_silently()).closed()
            server.release.set()
            assert [await response for response in busy] == [b"slow"] * LIMIT

    async def test_connection_without_a_first_byte_is_closed(
        self, monkeypatch: pytest.MonkeyPatch, *, is_secure: bool
    ) -> None:
        monkeypatch.setattr(connection_limit, "HEAD_TIMEOUT", 0.05)
        async with bench(is_secure=is_secure) as server:
            assert await (await server.connect_silently()).closed()
            monkeypatch.undo()
            assert await (await server.connect()).get() == b"fast"

    @pytest.mark.parametrize("is_later", [False, True], ids=["first", "later"])
    async def test_incomplete_head_gives_408_after_the_timeout(
        self, monkeypatch: pytest.MonkeyPatch, *, is_secure: bool, is_later: bool
    ) -> None:
        if not is_later:
            monkeypatch.setattr(connection_limit, "HEAD_TIMEOUT", 0.2)
        async with bench(is_secure=is_secure) as server:
            connection = await server.connect()
            if is_later:
                assert await connection.get() == b"fast"
                monkeypatch.setattr(connection_limit, "HEAD_TIMEOUT", 0.2)
            connection.writer.write(INCOMPLETE_HEAD)
            assert await connection.status() == TIMEOUT

    async def test_incomplete_later_head_is_ended_at_the_limit(self, *, is_secure: bool) -> None:
        async with bench(is_secure=is_secure) as server:
            idle = [await server.connect() for _ in range(LIMIT)]
            assert {await connection.get() for connection in idle} == {b"fast"}
            idle[1].writer.write(INCOMPLETE_HEAD)
            # Responds after the server has received the head above.
            assert await idle[2].get() == b"fast"
            client = await server.connect()
            assert await idle[1].status() == TIMEOUT
            assert await client.get() == b"fast"
            assert await idle[0].get() == b"fast"

    async def test_complete_head_ends_its_timeout(self, monkeypatch: pytest.MonkeyPatch, *, is_secure: bool) -> None:
        monkeypatch.setattr(connection_limit, "HEAD_TIMEOUT", 1.0)
        async with bench(is_secure=is_secure) as server, asyncio.TaskGroup() as group:
            idle, busy = await server.connect(), await server.connect()
            assert [await idle.get(), await idle.get()] == [b"fast"] * 2
            response = group.create_task(busy.get(b"slow"))
            await server.arrived.wait()
            # Its timeout ends later.
            assert await (await server.connect_silently()).closed()
            assert await idle.get() == b"fast"
            server.release.set()
            assert await response == b"slow"

    async def test_client_that_disconnects_leaves_nothing(self, *, is_secure: bool) -> None:
        async with bench(is_secure=is_secure) as server:
            for _ in range(2 * LIMIT):
                connection = await server.connect_silently()
                connection.writer.transport.abort()
            kept = await server.connect()
            assert await kept.get() == b"fast"


async def test_silent_connections_are_closed_at_the_stop() -> None:
    app = web.Application()
    server = HttpServer("test", flag="--test-bind-address", app=app, address=("127.0.0.1", 0))
    async with serving(server):
        client = Bench(server.port, False, asyncio.Event(), asyncio.Event(), [])  # noqa: FBT003
        silent = await client.connect_silently()
    assert await silent.closed()
    await client.close()


@pytest.mark.parametrize("is_secure", [True, False], ids=["TLS", "plain"])
async def test_connection_accepted_before_the_stop_is_closed(is_secure: bool) -> None:  # noqa: FBT001  # a row
    limit, server, transport = connection_limit.ConnectionLimit(Peers()), Mock(), Mock()
    tls = await self_signed() if is_secure else None
    async with limit.accepting(await limit.bind(server, address=("127.0.0.1", 0), tls=tls)):
        connection = Connection(limit, server, tls=tls)
    connection.connection_made(transport)
    transport.abort.assert_called_once_with()
    connection.connection_lost(None)
    assert limit._connections == {}


async def test_silent_connection_after_the_handshake_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    async with bench(is_secure=True) as server:
        monkeypatch.setattr(connection_limit, "HEAD_TIMEOUT", 0.2)
        assert await (await server.connect()).closed()


async def test_bytes_that_are_not_tls_end_the_connection() -> None:
    async with bench(is_secure=True) as server:
        connection = await server.connect_silently()
        connection.writer.write(REQUEST)
        await connection.closed()
        assert await (await server.connect()).get() == b"fast"


@pytest.mark.parametrize("is_secure", [False, True], ids=["plain", "TLS"])
async def test_pipelined_requests_are_answered(is_secure: bool) -> None:  # noqa: FBT001  # a row
    async with bench(is_secure=is_secure) as server:
        connection = await server.connect()
        connection.writer.write(REQUEST % b"" * 2)
        assert [await connection.response(), await connection.response()] == [b"fast"] * 2


@pytest.mark.parametrize("event", ["eof_received", "pause_writing", "resume_writing"])
async def test_handler_gets_the_events_of_its_connection(event: str) -> None:
    connection = Connection(connection_limit.ConnectionLimit(Peers()), Mock(), tls=None)
    getattr(connection, event)()
    connection._handler = Mock()
    getattr(connection, event)()
    assert [call[0] for call in connection._handler.method_calls] == [event]
