"""Limits the connections of an HTTP server, and the time in which a connection sends the head of a request.

`http_server` binds it; `connection` holds one connection and its state. asyncio takes 270 KiB for each TLS connection
as soon as its handshake begins, so a connection is admitted before that.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from itertools import count
from typing import TYPE_CHECKING

from aiohttp import web

from upgrade_manager.runtime.connection import Connection, State
from upgrade_manager.runtime.peers import Peers, largest

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Awaitable, Callable

    from aiohttp.web_protocol import RequestHandler

#: Open connections of one server: 17 MiB with TLS.
MAX_CONNECTIONS = 64
#: Seconds for the TLS handshake and the head of the first request, and for each later head from its first byte.
HEAD_TIMEOUT = 10.0


class ConnectionLimit:
    """Admits connections to a server; at the limit one is closed, of the peer that has most, of API servers last.

    That is the connection of this peer in the first State, and for the longest time. A busy one gives way only to a
    peer that has fewer connections: the new one is closed if all others of the same peer are busy.
    """

    def __init__(self, peers: Peers) -> None:
        self.peers = peers
        #: Open connections, oldest first.
        self._connections: dict[Connection, None] = {}
        self._handlers: dict[RequestHandler, Connection] = {}
        self.handshakes: asyncio.TaskGroup
        #: True once no connection is admitted any more.
        self._is_stopping = False
        self._steps = count()

    def expect_head(self, end: Callable[[], None]) -> asyncio.TimerHandle:
        """Call `end` unless the returned timer is cancelled in time."""
        return asyncio.get_running_loop().call_later(HEAD_TIMEOUT, end)

    def step(self) -> int:
        """Return a number that is higher with each call."""
        return next(self._steps)

    def track(self, server: web.Server) -> None:
        """Follow the requests of the server's connections."""
        inner: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]] = server.request_handler

        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            connection = self._handlers.get(request.protocol)
            if connection is None:
                # It was lost before the handler ran.
                return await inner(request)
            connection.begin(request)
            try:
                response = await inner(request)
            except web.HTTPException as error:
                _close_if_unread(request, error)
                raise
            finally:
                connection.end_request()
            _close_if_unread(request, response)
            return response

        server.request_handler = handle

    async def bind(self, server: web.Server, *, address: tuple[str, int], tls: ssl.SSLContext | None) -> asyncio.Server:
        """Bind to host (empty for all) and port. Raises OSError."""

        def accept() -> asyncio.Protocol:
            return Connection(self, server, tls=tls)

        host, port = address
        return await asyncio.get_running_loop().create_server(accept, host or None, port, start_serving=False)

    @asynccontextmanager
    async def accepting(self, listener: asyncio.Server) -> AsyncIterator[None]:
        """Accept connections; at the end close those without a request."""
        async with asyncio.TaskGroup() as self.handshakes:
            try:
                await listener.start_serving()
                yield
            finally:
                self._is_stopping = True
                listener.close()
                for connection in [one for one in self._connections if one.state is State.SILENT]:
                    connection.end()

    def admit(self, connection: Connection) -> None:
        """Add a connection, and end one at the limit."""
        self._connections[connection] = None
        if self._is_stopping:
            # It was accepted before the listener was closed.
            connection.end()
        elif len(self._connections) > MAX_CONNECTIONS:
            self._next_to_end(connection).end()

    def add_handler(self, handler: RequestHandler, connection: Connection) -> None:
        """Remember which connection the handler serves."""
        self._handlers[handler] = connection

    def remove(self, connection: Connection) -> None:
        """Forget a connection that has ended."""
        self._connections.pop(connection, None)

    def remove_handler(self, handler: RequestHandler) -> None:
        """Forget the handler of a lost connection."""
        self._handlers.pop(handler, None)

    def _next_to_end(self, new: Connection) -> Connection:
        peers = largest((connection.peer, 1) for connection in self._connections)
        is_busy_spared = new.peer in peers or any(peer.goes_last for peer in peers)
        others = [
            one
            for one in self._connections
            if one is not new and one.peer in peers and not (is_busy_spared and one.state is State.BUSY)
        ]
        return min(others, key=lambda one: (one.state, one.since), default=new)


def _close_if_unread(request: web.BaseRequest, response: web.StreamResponse) -> None:
    """Close the connection after the response to a request whose body was not read."""
    if not request.content.at_eof():
        response.force_close()
