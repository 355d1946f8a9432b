"""A server at the other end of the HTTP transport, and configurations for it."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

from upgrade_manager.kube.config import ClientConfig, TlsConfig
from upgrade_manager.kube.http_transport import HttpTransport

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class PreparedSource:
    """A source that returns prepared configurations in order, then the last one."""

    configs: list[ClientConfig]
    loads: int = 0

    async def load(self) -> ClientConfig:
        self.loads += 1
        return self.configs[min(self.loads, len(self.configs)) - 1]


def config_of(server: str, *newer: ClientConfig, **options: Any) -> ClientConfig:
    """Return a configuration for the server; `newer` are those of later loads."""
    source = PreparedSource(list(newer))
    return ClientConfig(server=server, source=source, **{"tls": TlsConfig(), **options})


@asynccontextmanager
async def serving(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Serve every path by the handler, and give the URL."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    server = TestServer(app, host="127.0.0.1")
    await server.start_server(ssl=tls)
    try:
        yield str(server.make_url("/")).rstrip("/")
    finally:
        await server.close()


@asynccontextmanager
async def connected(handler: Handler) -> AsyncIterator[HttpTransport]:
    """Give a transport to a server with that handler."""
    async with serving(handler) as url, HttpTransport(config_of(url)) as transport:
        yield transport
