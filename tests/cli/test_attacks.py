"""Clients without credentials at each server: what they send costs them, not the manager."""

from __future__ import annotations

import asyncio
import io
import json
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from ipaddress import ip_address

import pytest
from aiohttp import http_parser, streams
from prometheus_client import CollectorRegistry

from hack.bench.bomb import SIZE, bomb_request
from hack.virtual_time import virtual_now
from tests.support.managers.runtime import Reviews, serving
from tests.support.webhook.webhook import admission, head, review
from upgrade_manager.runtime import connection_limit
from upgrade_manager.runtime.cert_watcher import context_from_pem
from upgrade_manager.runtime.healthz import Probes
from upgrade_manager.runtime.http_server import HttpServer
from upgrade_manager.runtime.metrics import Metrics
from upgrade_manager.runtime.metrics_server import plain_metrics_server, secure_metrics_server
from upgrade_manager.runtime.peers import Peers
from upgrade_manager.runtime.refusal_log import LINES
from upgrade_manager.runtime.self_signed import make_pem
from webhook.admission import Admission
from webhook.catalogue import CHECKS
from webhook.check import Check, Finding, Subject
from webhook.metrics import WebhookMetrics
from webhook.server import PATH, webhook_server

ANY_PORT = ("127.0.0.1", 0)
SERVERS = ("probes", "metrics", "secure metrics", "webhook")
#: Loopback addresses, each another peer.
STRANGER, API_SERVER, OTHER = "127.0.0.2", "127.0.0.3", "127.0.0.4"
#: Seconds for what a server does at once: a test that fails does not hang.
BOUND = 30.0


async def certificate() -> ssl.SSLContext:
    """Return a server's TLS context."""
    return context_from_pem(make_pem(now=datetime.now(tz=UTC)))


def _server(name: str, peers: Peers, admits: Admission) -> HttpServer:
    metrics = Metrics(CollectorRegistry())
    if name == "probes":
        return Probes().server(ANY_PORT)
    if name == "metrics":
        return plain_metrics_server(metrics, address=ANY_PORT)
    if name == "secure metrics":
        return secure_metrics_server(metrics, address=ANY_PORT, client=Reviews(delay=0.01).client(), now=virtual_now)
    webhook_metrics = WebhookMetrics(metrics, checks=[check.name for check in CHECKS])
    return webhook_server(admits, metrics=webhook_metrics, address=ANY_PORT, tls=certificate, peers=peers)


@cache
def unverified() -> ssl.SSLContext:
    """Return a client's TLS context, which loads no certificates of authorities."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


@dataclass(frozen=True)
class Target:
    """A server under attack."""

    server: HttpServer
    is_secure: bool
    clients: list[Client] = field(default_factory=list)

    async def connect(self, *, host: str = STRANGER, begins_tls: bool = True) -> Client:
        """Connect from a loopback address."""
        tls = unverified() if self.is_secure and begins_tls else None
        streams = await asyncio.open_connection("127.0.0.1", self.server.port, ssl=tls, local_addr=(host, 0))
        self.clients.append(Client(*streams))
        return self.clients[-1]


@dataclass(frozen=True)
class Client:
    """A connection to a server."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def exchange(self, data: bytes) -> bytes:
        """Send; return what is received until the server closes the connection, which may lose the end of it."""
        received = bytearray()
        with suppress(ConnectionError):
            self.writer.write(data)
        async with asyncio.timeout(BOUND):
            with suppress(ConnectionError):
                while chunk := await self.reader.read(1 << 16):
                    received += chunk
        return bytes(received)

    @property
    def received(self) -> bytes:
        """Return the bytes that are received and not read yet."""
        return bytes(self.reader._buffer)  # type: ignore[attr-defined]

    async def close(self) -> None:
        """Close the connection at once."""
        self.writer.transport.abort()
        with suppress(OSError):
            await self.writer.wait_closed()


@asynccontextmanager
async def attacked(name: str, *, admits: Admission | None = None) -> AsyncIterator[Target]:
    """Serve one of SERVERS; API_SERVER is the address of its API server."""
    peers = Peers()
    peers.api_servers = frozenset({ip_address(API_SERVER)})
    server = _server(name, peers, admits or admission())
    async with serving(server):
        target = Target(server, is_secure=name in {"secure metrics", "webhook"})
        try:
            yield target
        finally:
            for client in target.clients:
                await client.close()


pytestmark = pytest.mark.real_loop


def post(body: object) -> bytes:
    data = json.dumps(body).encode()
    return head(len(data)) + data


def hanging(end: asyncio.Event) -> Admission:
    """Return an admission that hangs for plans with the name SLOW, until the end."""

    async def wait(subject: Subject) -> Sequence[Finding]:
        if subject.name == SLOW:
            await end.wait()
        return []

    return admission(checks=[Check(name="slow", field="spec", find=wait)])


#: Bytes of a body that a server receives before it closes the connection: what the event loop receives at once.
RECEIVED = 1 << 18
#: The limit, a stranger's connections, and reviews of the API server meanwhile.
LIMIT, CONNECTIONS, REVIEWS = 16, 30, 10
SLOW = "slow"
#: True if the client begins a TLS handshake, and what it sends.
ATTACKS = {
    "slow bodies": (True, head(3 << 20) + b" " * 10_000),
    "slow heads": (True, b"POST / HTTP/1.1\r\nHost:"),
    "idle handshakes": (False, b"\x16\x03\x01"),
    "connections": (True, b""),
    "slow reviews": (True, post(review(object={"metadata": {"name": SLOW}, "spec": {}}))),
}
#: Connections with bytes that are not a request.
GARBAGE = 150
TEXTS = (
    b"secret" * 10_000 + b"\r\n\r\n",
    b"GET / HTTP/1.1\r\nsecret\x00\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: secret\r\n\r\n",
    b"\x16\x03\x01secret\r\n\r\n",
    b"GET /" + b"secret" * 2000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
)
REQUEST = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
CHUNKED = "Transfer-Encoding: chunked\r\n"


@dataclass
class Counted:
    """Calls of aiohttp with bodies."""

    decoders: int = 0
    received: int = 0


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    """Count decoders and received bytes of bodies."""
    found = Counted()
    new_decoder, feed = http_parser.DeflateBuffer.__init__, streams.StreamReader.feed_data

    def decode(self: http_parser.DeflateBuffer, *args: object, **options: object) -> None:
        found.decoders += 1
        new_decoder(self, *args, **options)  # type: ignore[arg-type]

    def receive(self: streams.StreamReader, data: bytes, size: int = 0) -> bool:
        found.received += len(data)
        return feed(self, data, size)

    monkeypatch.setattr(http_parser.DeflateBuffer, "__init__", decode)
    monkeypatch.setattr(streams.StreamReader, "feed_data", receive)
    return found


def requests() -> Iterator[tuple[str, str, str, str]]:
    """Yield server, method, path and further lines of the head."""
    own = {"probes": ("GET", "/readyz"), "webhook": ("POST", PATH)}
    for server in SERVERS:
        method, path = own.get(server, ("GET", "/metrics"))
        yield server, method, path, ""
        yield server, method, path, CHUNKED
        yield server, method, path, "Expect: 100-continue\r\n"
        yield server, method, path, "Expect: something\r\n"
        yield server, method, path, "Authorization: Bearer bad\r\n"
        yield server, "PUT", path, ""
        yield server, "PUT", "/other", CHUNKED


@pytest.mark.rule("security: a request body is never decompressed, and left in the socket unless it is a review's")
@pytest.mark.parametrize(("server", "method", "path", "head"), list(requests()))
async def test_bomb_is_not_received(server: str, method: str, path: str, head: str, counted: Counted) -> None:
    async with attacked(server) as target:
        for is_kept_alive in (False, True):
            client = await target.connect()
            if is_kept_alive:
                client.writer.write(REQUEST)
                await client.reader.readuntil(b"\r\n\r\n")
            received = await client.exchange(bomb_request(method, path, extra=head))
            assert b"HTTP/1.1 5" not in received
        assert counted.decoders == 0
        assert counted.received <= 2 * RECEIVED


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.full
async def test_bombs_at_once_leave_the_server_as_it_was(server: str, counted: Counted) -> None:
    async def attack(target: Target) -> None:
        client = await target.connect()
        await client.exchange(bomb_request("POST", PATH if server == "webhook" else "/metrics"))

    async with attacked(server) as target:
        async with asyncio.TaskGroup() as group:
            for _ in range(4):
                group.create_task(attack(target))
        assert await is_served(target)
    assert counted.decoders == 0
    assert counted.received <= 4 * RECEIVED < 4 * SIZE


@pytest.mark.rule("security: each kind of refusal has at most 20 short lines a minute, without the client's text")
@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.full
async def test_garbage_has_few_short_lines(server: str, stream: io.StringIO) -> None:
    async def attack(target: Target, garbage: bytes) -> None:
        client = await target.connect()
        client.writer.write(REQUEST)
        await client.reader.readuntil(b"\r\n\r\n")
        assert b"HTTP/1.1 5" not in await client.exchange(garbage)

    async with attacked(server) as target:
        # No more than are admitted at once.
        for _ in range(GARBAGE // 50):
            async with asyncio.TaskGroup() as group:
                for number in range(50):
                    group.create_task(attack(target, TEXTS[number % len(TEXTS)]))
        assert await is_served(target)
    lines = stream.getvalue().splitlines()
    kinds = Counter(json.loads(line)["kind"] for line in lines)
    assert len(kinds) >= 2
    assert max(kinds.values()) == LINES
    assert max(len(line) for line in lines) <= 300
    assert "secret" not in stream.getvalue()
    assert {json.loads(line)["peer"] for line in lines} == {STRANGER}


@pytest.mark.rule("security: connections are limited for each peer, and API servers go last")
@pytest.mark.parametrize("host", [API_SERVER, OTHER])
@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.full
async def test_reviews_pass_under_attack(attack: str, host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`host` is an API server's address, or one that is not known to be."""
    begins_tls, sent = ATTACKS[attack]
    monkeypatch.setattr(connection_limit, "MAX_CONNECTIONS", LIMIT)

    async def harass(target: Target, count: int) -> None:
        for _ in range(count):
            with suppress(ConnectionError):
                client = await target.connect(begins_tls=begins_tls)
                client.writer.write(sent)

    end = asyncio.Event()
    async with attacked("webhook", admits=hanging(end)) as target:
        await harass(target, CONNECTIONS)
        for _ in range(REVIEWS):
            await harass(target, 2)
            client = await target.connect(host=host)
            assert (await client.exchange(post(review()))).startswith(b"HTTP/1.1 200 ")
        for client in target.clients:
            assert b"HTTP/1.1 5" not in client.received
        # The server waits for its reviews before it ends.
        end.set()


async def is_served(target: Target) -> bool:
    """Return whether another client gets a response."""
    client = await target.connect(host=API_SERVER)
    return b"HTTP/1.1 " in await client.exchange(REQUEST.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
