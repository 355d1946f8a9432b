"""An HTTP server as something that the manager runs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from aiohttp import web

from upgrade_manager.runtime.healthz import Unhealthy

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable

    from upgrade_manager.runtime.bindaddress import BindAddress

#: Seconds that requests get to end when the server stops.
DRAIN = 5.0


async def plain() -> None:
    """The TLS of a server that has none."""
    return


class HttpServer:
    """Serves `app` at `address` from `run()` until cancelled; `bound()` returns once it accepts connections.

    `tls` is awaited when the server starts, because making a certificate takes a while.
    """

    def __init__(
        self,
        name: str,
        *,
        app: web.Application,
        address: BindAddress,
        tls: Callable[[], Awaitable[ssl.SSLContext | None]] = plain,
        drain: float = DRAIN,
    ) -> None:
        self.name = name
        #: The port in use; 0 until bound.
        self.port = 0
        self._app = app
        self._address = address
        self._tls = tls
        self._drain = drain
        self._bound = asyncio.Event()

    async def run(self) -> None:
        """Serve until cancelled, then let the requests that are under way end. Raises OSError when it cannot bind."""
        runner = web.AppRunner(self._app, handle_signals=False, access_log=None, shutdown_timeout=self._drain)
        await runner.setup()
        try:
            context = await self._tls()
            site = web.TCPSite(runner, self._address.host or None, self._address.port, ssl_context=context)
            await site.start()
            self.port = runner.addresses[0][1]
            self._bound.set()
            await asyncio.get_running_loop().create_future()
        finally:
            self._bound.clear()
            await runner.cleanup()

    async def bound(self) -> None:
        """Wait until connections are accepted."""
        await self._bound.wait()

    async def check(self) -> None:
        """Readiness: raises Unhealthy while connections are not accepted."""
        if not self._bound.is_set():
            raise Unhealthy(f"server {self.name} does not accept connections")
