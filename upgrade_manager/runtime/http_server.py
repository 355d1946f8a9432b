"""An HTTP server that the manager runs."""

from __future__ import annotations

import asyncio
import errno
from typing import TYPE_CHECKING

from aiohttp import web

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable

#: Seconds for running requests when the server stops.
_DRAIN_TIMEOUT = 5.0


class BindError(Exception):
    """The server cannot listen on its address."""


async def no_tls() -> None:
    """Return None: a plain server has no TLS context."""


class HttpServer:
    """Serves `app` at `address`, the value of `flag`: host (empty for all) and port (0 for a free one)."""

    def __init__(
        self,
        name: str,
        *,
        flag: str,
        app: web.Application,
        address: tuple[str, int],
        tls: Callable[[], Awaitable[ssl.SSLContext | None]] = no_tls,
    ) -> None:
        self.name = name
        #: The port in use; 0 until bound.
        self.port = 0
        self._flag = flag
        self._app = app
        self._address = address
        self._tls = tls
        self._bound = asyncio.Event()

    async def run(self) -> None:
        """Serve until cancelled, then wait for running requests. Raises BindError."""
        runner = web.AppRunner(self._app, handle_signals=False, access_log=None, shutdown_timeout=_DRAIN_TIMEOUT)
        await runner.setup()
        try:
            await self._start(runner)
            self.port = runner.addresses[0][1]
            self._bound.set()
            await asyncio.get_running_loop().create_future()
        finally:
            await runner.cleanup()

    async def bound(self) -> None:
        """Readiness: wait until connections are accepted."""
        await self._bound.wait()

    async def _start(self, runner: web.AppRunner) -> None:
        context = await self._tls()
        host, port = self._address
        try:
            await web.TCPSite(runner, host or None, port, ssl_context=context).start()
        except OSError as error:
            reason = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be used: {error}"
            raise BindError(f"{self._flag} {host}:{port} {reason}") from error
