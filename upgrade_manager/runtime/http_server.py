"""An HTTP server that the manager runs."""

from __future__ import annotations

import asyncio
import errno
from typing import TYPE_CHECKING, cast

from aiohttp import web

from upgrade_manager.runtime.connection_limit import ConnectionLimit
from upgrade_manager.runtime.peers import Peers
from upgrade_manager.runtime.refusal_log import RequestLogger

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable

#: Seconds for running requests when the server stops.
DRAIN_TIMEOUT = 5.0
#: Seconds that a connection without a request is kept (controller-runtime's webhook server).
_IDLE_TIMEOUT = 90.0
#: Bytes of a body that aiohttp receives before the handler reads them: half of what it may hold.
_READ_BUFFER = 32 << 10


class BindError(Exception):
    """The server cannot listen on its address."""


async def no_tls() -> None:
    """Return None: a plain server has no TLS context."""


def make_runner(app: web.Application, *, name: str, drain_timeout: float = DRAIN_TIMEOUT) -> web.AppRunner:
    """Return a runner for peers without credentials: it neither decodes bodies nor reads what a handler leaves."""
    return web.AppRunner(
        app,
        handle_signals=False,
        access_log=None,
        logger=RequestLogger(name),
        auto_decompress=False,
        lingering_time=0,
        read_bufsize=_READ_BUFFER,
        shutdown_timeout=drain_timeout,
        keepalive_timeout=_IDLE_TIMEOUT,
    )


class HttpServer:
    """Serves `app` at `address`, the value of `flag`: host (empty for all) and port (0 for a free one).

    Connections are limited in number, and closed unless they send a request soon (`connection_limit`). Bodies that a
    handler does not read are left in the socket, and their connection is closed.
    """

    def __init__(
        self,
        name: str,
        *,
        flag: str,
        app: web.Application,
        address: tuple[str, int],
        tls: Callable[[], Awaitable[ssl.SSLContext | None]] = no_tls,
        peers: Peers | None = None,
        drain_timeout: float = DRAIN_TIMEOUT,
    ) -> None:
        self.name = name
        #: The port in use; 0 until bound.
        self.port = 0
        self._flag = flag
        self._app = app
        self._limit = ConnectionLimit(peers or Peers())
        self._address = address
        self._tls = tls
        self._drain_timeout = drain_timeout
        self._bound = asyncio.Event()

    async def run(self) -> None:
        """Serve until cancelled, then wait for running requests. Raises BindError."""
        runner = make_runner(self._app, name=self.name, drain_timeout=self._drain_timeout)
        await runner.setup()
        try:
            server = cast("web.Server", runner.server)
            self._limit.track(server)
            listener = await self._bind(server)
            async with self._limit.accepting(listener):
                self.port = listener.sockets[0].getsockname()[1]
                self._bound.set()
                await asyncio.get_running_loop().create_future()
        finally:
            await runner.cleanup()

    async def bound(self) -> None:
        """Readiness: wait until connections are accepted."""
        await self._bound.wait()

    async def _bind(self, server: web.Server) -> asyncio.Server:
        tls = await self._tls()
        try:
            return await self._limit.bind(server, address=self._address, tls=tls)
        except OSError as error:
            host, port = self._address
            reason = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be used: {error}"
            raise BindError(f"{self._flag} {host}:{port} {reason}") from error
