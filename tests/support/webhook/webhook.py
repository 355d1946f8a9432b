"""Reviews, and the webhook's HTTP server without sockets, so that its time-outs pass in virtual time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, cast

from aiohttp import web
from prometheus_client import CollectorRegistry

from tests.support.managers.toolkit_config import TOOLKIT
from upgrade_manager.kube.objects import Object
from upgrade_manager.runtime.http_server import make_runner
from upgrade_manager.runtime.metrics import Metrics
from upgrade_manager.runtime.peers import Peers
from webhook.admission import Admission
from webhook.catalogue import CHECKS
from webhook.check import Check
from webhook.cluster import ClusterReader, Listing
from webhook.metrics import WebhookMetrics
from webhook.server import PATH, webhook_app

#: Addresses of clients.
STRANGER, API_SERVER = "10.52.0.7", "10.53.0.1"
#: Virtual seconds for a response.
RESPONSE_TIMEOUT = 60.0
GROUP_VERSION_KIND = {"group": "management.harvesterhci.io", "version": "v1beta1", "kind": "UpgradePlan"}


class EmptyCluster:
    """A cluster without objects."""

    async def list(self, listing: Listing) -> Sequence[Object]:  # noqa: ARG002  # the protocol's signature
        await asyncio.sleep(0)
        return []


def review(operation: str = "CREATE", **fields: Any) -> dict[str, Any]:
    """Return a review; `fields` replace those of its request."""
    plan = {"metadata": {"name": "demo"}, "spec": {"version": "v1.8.0"}}
    objects = {"object": None if operation == "DELETE" else plan, "oldObject": None if operation == "CREATE" else plan}
    kind = dict(GROUP_VERSION_KIND)
    request = {"uid": "a-uid", "kind": kind, "operation": operation, "name": "demo", **objects, **fields}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


@dataclass(frozen=True)
class Response:
    """An HTTP response."""

    status: int
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def review(self) -> dict[str, Any]:
        """The `response` of the review."""
        found = json.loads(self.body)
        assert (found["apiVersion"], found["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
        return cast("dict[str, Any]", found["response"])

    @property
    def messages(self) -> list[str]:
        causes = self.review["status"]["details"]["causes"]
        return [f"{cause['field']}: {cause['message']}" for cause in causes]


class Wire(asyncio.Transport):
    """One connection to an aiohttp server, in memory."""

    def __init__(self, host: str = STRANGER) -> None:
        super().__init__({"peername": (host, 40_000)})
        self.received = bytearray()
        self.closed = asyncio.Event()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.received += data

    def is_closing(self) -> bool:
        return self.closed.is_set()

    def close(self) -> None:
        self.closed.set()

    abort = close

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def response(self) -> Response:
        """Return the response that was received."""
        header, _, content = bytes(self.received).partition(b"\r\n\r\n")
        return Response(int(header.split(b" ", 2)[1]), content)


class WebhookServer:
    """Serves a webhook to connections in memory."""

    def __init__(self, server: web.Server, metrics: Metrics) -> None:
        self._server = server
        self.registry = metrics.registry

    async def post(
        self, body: object, *, content_type: str = "application/json", path: str = PATH, host: str = STRANGER
    ) -> Response:
        """Post a body: bytes, or an object as JSON."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return await self.send([head(len(data), content_type=content_type, path=path) + data], host=host)

    async def send(self, pieces: Iterable[bytes], *, interval: float = 0.0, host: str = STRANGER) -> Response:
        """Send a request in pieces; return the response. Raises TimeoutError without one."""
        wire, handler = self.connect(host)
        try:
            async with asyncio.timeout(RESPONSE_TIMEOUT), asyncio.TaskGroup() as group:
                sending = group.create_task(_send(handler, wire, pieces, interval))
                await wire.closed.wait()
                sending.cancel()
        finally:
            handler.connection_lost(None)
        return wire.response()

    def connect(self, host: str = STRANGER) -> tuple[Wire, asyncio.Protocol]:
        wire, handler = Wire(host), self._server()
        handler.connection_made(wire)
        return wire, handler

    async def disconnect(self, pieces: Iterable[bytes]) -> None:
        """Send a part of a request and disconnect."""
        handler = self._server()
        handler.connection_made(Wire())
        for piece in pieces:
            handler.data_received(piece)
            await asyncio.sleep(1)
        handler.connection_lost(None)
        await asyncio.sleep(0.1)

    def metric(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"harvester_upgrade_admission_{name}", labels)


async def _send(handler: asyncio.Protocol, wire: Wire, pieces: Iterable[bytes], interval: float) -> None:
    for piece in pieces:
        if wire.is_closing():
            return
        handler.data_received(piece)
        await asyncio.sleep(interval)


def head(length: int, *, content_type: str = "application/json", path: str = PATH) -> bytes:
    """Return the head of a request whose body has so many bytes."""
    lines = (f"POST {path} HTTP/1.1", "Host: x", "Connection: close", f"Content-Type: {content_type}")
    return "\r\n".join((*lines, f"Content-Length: {length}", "", "")).encode()


class _NoCaches:
    """Caches nothing."""

    async def reader(self) -> None:
        pass

    def start(self) -> None:
        pass


NO_CACHES = _NoCaches()


def admission(*, reader: ClusterReader | None = None, checks: Sequence[Check] = CHECKS) -> Admission:
    """Return an admission without caches, by default with all checks of an empty cluster."""
    return Admission(reader or EmptyCluster(), caches=NO_CACHES, toolkit=TOOLKIT, checks=checks)


async def posted(body: object, admits: Admission | None = None, **options: Any) -> Response:
    """Serve a webhook for one request, and return its response."""
    async with webhook(admits) as server:
        return await server.post(body, **options)


@asynccontextmanager
async def webhook(admits: Admission | None = None) -> AsyncIterator[WebhookServer]:
    """Serve a webhook, by default that of an empty cluster; API_SERVER is the address of its API server."""
    metrics, peers = Metrics(CollectorRegistry()), Peers()
    peers.api_servers = frozenset({ip_address(API_SERVER)})
    app = webhook_app(
        admits or admission(),
        metrics=WebhookMetrics(metrics, checks=[check.name for check in CHECKS]),
        peers=peers,
    )
    runner = make_runner(app, name="webhook")
    await runner.setup()
    try:
        yield WebhookServer(cast("web.Server", runner.server), metrics)
    finally:
        await runner.cleanup()
