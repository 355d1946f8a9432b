"""`/metrics`, in Prometheus' text format or OpenMetrics, over TLS and for those only who may read it, by default."""

from __future__ import annotations

import asyncio
import gzip
from typing import TYPE_CHECKING

from aiohttp import web
from prometheus_client.exposition import choose_encoder

from upgrade_manager.runtime.cert_watcher import CertificateDirectory
from upgrade_manager.runtime.http_server import HttpServer
from upgrade_manager.runtime.metrics_auth import YES, Scrapers
from upgrade_manager.runtime.self_signed import self_signed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from aiohttp.typedefs import Handler, Middleware

    from upgrade_manager.kube.client import Client
    from upgrade_manager.runtime.bindaddress import BindAddress
    from upgrade_manager.runtime.metrics import Metrics

PATH = "/metrics"
_COMPRESSION = 4


def metrics_server(
    metrics: Metrics, *, address: BindAddress, client: Client, certificates: Path | None = None
) -> HttpServer:
    """The secure server: TLS with the pair in `certificates` or a self-signed one, and reviews through `client`."""
    app = metrics_app(metrics, _guard(Scrapers(client, path=PATH)))
    tls = self_signed if certificates is None else CertificateDirectory(certificates).context
    return HttpServer("metrics", app=app, address=address, tls=tls)


def plain_metrics_server(metrics: Metrics, *, address: BindAddress) -> HttpServer:
    """Plain HTTP for anybody (`--metrics-secure=false`)."""
    return HttpServer("metrics", app=metrics_app(metrics), address=address)


def metrics_app(metrics: Metrics, *guards: Middleware) -> web.Application:
    """The route, behind any guards."""
    app = web.Application(middlewares=guards)
    app.router.add_get(PATH, _expose(metrics))
    return app


def _expose(metrics: Metrics) -> Callable[[web.Request], Awaitable[web.Response]]:
    #: One rendering at a time: more would only share one processor.
    busy = asyncio.Lock()

    async def handle(request: web.Request) -> web.Response:
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        zipped = "gzip" in request.headers.get("Accept-Encoding", "")

        def render() -> bytes:
            body: bytes = encode(metrics.registry)
            return gzip.compress(body, _COMPRESSION, mtime=0) if zipped else body

        async with busy:
            metrics.refresh()
            # In a thread, so that the loop goes on while ten thousand series become text.
            body = await asyncio.to_thread(render)
        headers = {"Content-Type": content_type} | ({"Content-Encoding": "gzip"} if zipped else {})
        return web.Response(body=body, headers=headers)

    return handle


def _guard(scrapers: Scrapers) -> Middleware:
    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        verdict = await scrapers.judge(request.headers.get("Authorization", ""))
        if verdict is not YES:
            return web.Response(status=verdict.status, text=verdict.text)
        return await handler(request)

    return guard
