"""The elector's own connection, through a proxy that freezes or resets connections."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random

import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry
from yarl import URL

from hack.control_plane.backend import direct
from hack.control_plane.control_plane import ADMIN, ControlPlane
from tests.support.programs.polling import eventually
from tests.support.server.http_api import config_of, serving
from tests.support.server.runtime_lease_server import NAME, NAMESPACE, LeaseServer
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.config import TlsConfig
from upgrade_manager.kube.http_transport import HttpTransport
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import LEASES
from upgrade_manager.kube.transport import Request, Transport
from upgrade_manager.runtime.leader_election import LeaderElector
from upgrade_manager.runtime.lease import holder_of, record_of
from upgrade_manager.runtime.metrics import Metrics

_CHUNK = 65536
#: SO_LINGER on, 0 s: closing sends RST.
_RESET = struct.pack("ii", 1, 0)


class TcpProxy:
    """Forwards connections to a port of loopback; a fault concerns the connections that exist then."""

    def __init__(self, target: int) -> None:
        self._target = target
        #: Connections so far.
        self.accepted = 0
        self.port = 0
        self._clients: set[asyncio.StreamWriter] = set()
        self._frozen: set[asyncio.StreamWriter] = set()

    def freeze(self) -> None:
        """Keep the present connections open, and forward nothing more on them, in either direction."""
        self._frozen |= self._clients

    def reset(self) -> None:
        for client in self._clients:
            client.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            client.transport.abort()

    async def forward(self, reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        """Forward one connection in both directions until one side ends it."""
        self.accepted += 1
        self._clients.add(client)
        try:
            with suppress(OSError):
                upstream, server = await asyncio.open_connection("127.0.0.1", self._target)
                try:
                    async with asyncio.TaskGroup() as group:
                        there = group.create_task(self._copy(reader, server, client))
                        back = group.create_task(self._copy(upstream, client, client))
                        await asyncio.wait((there, back), return_when=asyncio.FIRST_COMPLETED)
                        there.cancel()
                        back.cancel()
                finally:
                    server.transport.abort()
        finally:
            self._clients.discard(client)
            self._frozen.discard(client)
            client.transport.abort()

    async def _copy(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, client: asyncio.StreamWriter
    ) -> None:
        with suppress(OSError):
            while chunk := await source.read(_CHUNK):
                if client not in self._frozen:
                    sink.write(chunk)
                    await sink.drain()


@asynccontextmanager
async def proxy(target: int) -> AsyncIterator[TcpProxy]:
    """Run a proxy to a port of loopback."""
    made = TcpProxy(target)
    async with asyncio.TaskGroup() as group:
        tasks: set[asyncio.Task[None]] = set()

        def accept(reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
            tasks.add(group.create_task(made.forward(reader, client)))

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        made.port = server.sockets[0].getsockname()[1]
        async with server:
            yield made
            server.close()
            for task in tasks:
                task.cancel()


pytestmark = pytest.mark.real_loop

#: More than the pool of ordinary requests has.
MANY = 40


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Renew the lease often; the time-outs stay as they are."""
    monkeypatch.setattr("upgrade_manager.runtime.leader_election.RETRY_PERIOD", 0.05)


@dataclass
class Line:
    """An API server with a lease behind a proxy, and a client's transport to it."""

    proxy: TcpProxy
    transport: HttpTransport
    lease: LeaseServer
    #: Set to let requests of other paths end.
    ready: asyncio.Event
    #: The statuses of the responses that the client received; `<error>` for none.
    codes: list[tuple[str, str]] = field(default_factory=list)
    written: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def writes(self, count: int) -> None:
        """Wait for so many more writes of the lease."""
        wanted = len(self.lease.writes) + count
        async with self.written:
            await self.written.wait_for(lambda: len(self.lease.writes) >= wanted)


@asynccontextmanager
async def connected() -> AsyncIterator[Line]:
    lease, ready, codes, written = LeaseServer(), asyncio.Event(), list[tuple[str, str]](), asyncio.Condition()

    async def handle(request: web.Request) -> web.Response:
        if not request.path.startswith("/apis/coordination.k8s.io/"):
            await ready.wait()
            return web.Response()
        sent = Request(method=request.method, path=request.path, body=await request.read())
        async with written:
            response = lease.handle(sent)
            written.notify_all()
        return web.Response(status=response.status, body=response.body, headers=dict(response.headers))

    def on_response(method: str, _host: str, code: str, _seconds: float) -> None:
        codes.append((method, code))

    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(serving(handle))
        through = await stack.enter_async_context(proxy(URL(url).port or 0))
        config = config_of(f"http://127.0.0.1:{through.port}")
        transport = await stack.enter_async_context(HttpTransport(config, on_response=on_response))
        yield Line(proxy=through, transport=transport, lease=lease, ready=ready, codes=codes, written=written)
        ready.set()


@asynccontextmanager
async def leading(transport: Transport, *, namespace: str = NAMESPACE) -> AsyncIterator[LeaderElector]:
    """Run an elector that keeps its lease; a lost lease ends the test with LeaseLost."""
    elector = LeaderElector(
        Client(transport, user_agent="a", random=Random(1)),
        name=NAME,
        namespace=namespace,
        identity="a",
        random=Random(1),
        now=lambda: datetime.now(UTC),
        metrics=Metrics(CollectorRegistry()),
    )
    await elector.acquire()
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(elector.renew()), group.create_task(elector.watch())]
        yield elector
        assert elector.is_leader
        for task in tasks:
            task.cancel()


def transitions(line: Line) -> set[tuple[str, int]]:
    return {(spec["holderIdentity"], spec["leaseTransitions"]) for _, spec in line.lease.writes}


@pytest.mark.rule("security: frozen and reset connections cost the leader no lease")
@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("fault", ["freeze", "reset"])
async def test_dead_connections_cost_no_lease(fault: str) -> None:
    async with connected() as line:
        line.ready.set()
        # Three idle connections of ordinary requests die with that of the elector.
        await asyncio.gather(*(line.transport.send(Request(method="GET", path="/x")) for _ in range(3)))
        async with leading(line.transport.reserved()):
            await line.writes(2)
            getattr(line.proxy, fault)()
            await line.writes(2)
            # One request finds that the only connection is dead; aiohttp repeats one on a connection that was reset.
            assert line.codes.count(("PUT", "<error>")) == (1 if fault == "freeze" else 0)
        assert transitions(line) == {("a", 0)}


@pytest.mark.usefixtures("often")
async def test_hanging_requests_do_not_delay_the_lease() -> None:
    async with connected() as line, asyncio.TaskGroup() as group:
        hanging = [group.create_task(line.transport.send(Request(method="GET", path="/x"))) for _ in range(MANY)]
        async with leading(line.transport.reserved()):
            await line.writes(3)
        assert not any(task.done() for task in hanging)
        line.ready.set()


async def test_streams_do_not_use_the_reserved_connection() -> None:
    async with connected() as line:
        line.ready.set()
        async with line.transport.reserved().open(Request(method="GET", path="/x")) as stream:
            assert stream.status == 200


@pytest.mark.assets
async def test_lease_on_a_real_server_outlives_a_frozen_connection(control_plane: ControlPlane) -> None:
    async with AsyncExitStack() as stack:
        through = await stack.enter_async_context(proxy(URL(control_plane.url).port or 0))
        admin = await stack.enter_async_context(direct(control_plane, token=ADMIN.token))
        server, tls = f"https://127.0.0.1:{through.port}", TlsConfig(ca_data=control_plane.certificate.decode())
        config = config_of(server, tls=tls, authorization=f"Bearer {ADMIN.token}")
        transport = await stack.enter_async_context(HttpTransport(config))
        client = Client(admin, user_agent="test", random=Random(1))

        async def read() -> Object:
            return await client.get(LEASES, NAME, namespace="default")

        async with leading(transport.reserved(), namespace="default"):
            through.freeze()
            frozen = record_of(await read())

            async def is_renewed() -> bool:
                return record_of(await read()) != frozen

            await eventually(is_renewed, seconds=60, pause=0.5)
            lease = await read()
        assert (holder_of(lease), record_of(lease)["leaseTransitions"]) == ("a", frozen["leaseTransitions"])
        assert through.accepted == 2
        await client.delete(LEASES, NAME, namespace="default")
