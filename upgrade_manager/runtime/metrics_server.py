"""Serves `/metrics` in Prometheus' text format or OpenMetrics; by default over TLS and to authorized scrapers only.

cli/servers.py adds it; metrics_auth.py authorizes.
"""

from __future__ import annotations

import asyncio
import gzip
from typing import TYPE_CHECKING

from aiohttp import web
from prometheus_client.exposition import choose_encoder, gzip_accepted

from upgrade_manager.runtime.http_server import HttpServer
from upgrade_manager.runtime.metrics_auth import ALLOWED, MetricsAuthorizer
from upgrade_manager.runtime.peers import Peers
from upgrade_manager.runtime.self_signed import self_signed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime

    from aiohttp.typedefs import Handler, Middleware
    from prometheus_client import CollectorRegistry

    from upgrade_manager.kube.client import Client
    from upgrade_manager.runtime.metrics import Metrics

PATH = "/metrics"
FLAG = "--metrics-bind-address"
_GZIP_LEVEL = 4


def secure_metrics_server(
    metrics: Metrics, *, address: tuple[str, int], client: Client, now: Callable[[], datetime]
) -> HttpServer:
    """Return a server with a self-signed certificate that reviews each request through `client`."""
    app = _app(metrics, _authorization(MetricsAuthorizer(client, path=PATH, now=now)))
    return HttpServer("metrics", flag=FLAG, app=app, address=address, tls=self_signed)


def plain_metrics_server(metrics: Metrics, *, address: tuple[str, int]) -> HttpServer:
    """Return a plain HTTP server without authorization (`--metrics-secure=false`)."""
    return HttpServer("metrics", flag=FLAG, app=_app(metrics), address=address)


def _app(metrics: Metrics, *middlewares: Middleware) -> web.Application:
    app = web.Application(middlewares=middlewares)
    app.router.add_get(PATH, _expose(metrics))
    return app


def _expose(metrics: Metrics) -> Callable[[web.Request], Awaitable[web.Response]]:
    rendering = asyncio.Lock()

    async def handle(request: web.Request) -> web.Response:
        encode, content_type = _encoder(request.headers.get("Accept", ""))
        is_compressed = gzip_accepted(request.headers.get("Accept-Encoding", ""))

        def render() -> bytes:
            body: bytes = encode(metrics.registry)
            return gzip.compress(body, _GZIP_LEVEL, mtime=0) if is_compressed else body

        async with rendering:
            metrics.refresh()
            # In a thread, because ten thousand series take longer than the event loop may be blocked.
            body = await asyncio.to_thread(render)
        headers = {"Content-Type": content_type} | ({"Content-Encoding": "gzip"} if is_compressed else {})
        return web.Response(body=body, headers=headers)

    return handle


def _encoder(accept: str) -> tuple[Callable[[CollectorRegistry], bytes], str]:
    """Return the encoder and its content type: the text format for a header that cannot be interpreted."""
    try:
        return choose_encoder(accept)
    except (TypeError, ValueError):
        # A version that is not a number.
        return choose_encoder("")


def _authorization(authorizer: MetricsAuthorizer) -> Middleware:
    peers = Peers()

    @web.middleware
    async def authorize(request: web.Request, handler: Handler) -> web.StreamResponse:
        peer = peers.of(request.transport).name
        decision = await authorizer.authorize(request.headers.get("Authorization", ""), peer=peer)
        if decision is not ALLOWED:
            return web.Response(status=decision.status, text=decision.text)
        return await handler(request)

    return authorize
