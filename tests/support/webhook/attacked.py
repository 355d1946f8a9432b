"""The three servers of the manager on loopback ports, and clients that attack them."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from ipaddress import ip_address
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry

from hack.virtual_time import virtual_now
from tests.support.managers.runtime import Reviews, serving
from tests.support.webhook.webhook import admission
from upgrade_manager.runtime.cert_watcher import context_from_pem
from upgrade_manager.runtime.healthz import Probes
from upgrade_manager.runtime.metrics import Metrics
from upgrade_manager.runtime.metrics_server import plain_metrics_server, secure_metrics_server
from upgrade_manager.runtime.peers import Peers
from upgrade_manager.runtime.self_signed import make_pem
from webhook.catalogue import CHECKS
from webhook.metrics import WebhookMetrics
from webhook.server import webhook_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from upgrade_manager.runtime.http_server import HttpServer
    from webhook.admission import Admission

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
