"""Limits the connections of an HTTP server, and the time in which a connection sends the head of a request.

asyncio takes 270 KiB for each TLS connection as soon as its handshake begins, so a connection is admitted before that.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, cast

from aiohttp import web

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator

    from aiohttp.typedefs import Handler
    from aiohttp.web_protocol import RequestHandler

#: Open connections of one server: 17 MiB with TLS.
MAX_CONNECTIONS = 64
#: Seconds for the TLS handshake and the head of the first request, and for each later head from its first byte.
HEAD_TIMEOUT = 10.0
_LATE_RESPONSE = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class ConnectionLimit:
    """Admits connections to a server; at the limit another one is closed, unless all have complete requests.

    That is the oldest with an incomplete request, or else the oldest silent or idle one. A request is complete when its
    body has arrived, so a slow sender holds no place that another client needs.
    """

    def __init__(self, app: web.Application) -> None:
        #: Connections that have not sent a byte yet, oldest first; the others have a handler.
        self.silent: dict[_Connection, None] = {}
        #: Time-outs of handlers whose request has no complete head.
        self._heads: dict[RequestHandler, asyncio.TimerHandle] = {}
        #: Requests that have begun and have no response, oldest first; None until the head is complete.
        self._running: dict[RequestHandler, web.Request | None] = {}
        self.handshakes: asyncio.TaskGroup
        #: True once no connection is admitted any more.
        self._is_stopping = False
        app.middlewares.append(self._track)

    @web.middleware
    async def _track(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        protocol = request.protocol
        if timer := self._heads.pop(protocol, None):
            timer.cancel()
        self._running[protocol] = request
        try:
            return await handler(request)
        finally:
            self._running.pop(protocol, None)

    def expect_head(self, handler: RequestHandler, *, until: float) -> None:
        """End the connection unless the head of its request is complete at that time of the loop."""
        self._running[handler] = None
        self._heads[handler] = asyncio.get_running_loop().call_at(until, self._end, handler)

    def received(self, handler: RequestHandler) -> None:
        """Expect a head, because a connection without a request has received bytes."""
        if handler not in self._running:
            self.expect_head(handler, until=asyncio.get_running_loop().time() + HEAD_TIMEOUT)

    def forget_head(self, handler: RequestHandler) -> None:
        """Expect no head any more."""
        if timer := self._heads.pop(handler, None):
            timer.cancel()
            del self._running[handler]

    async def bind(self, server: web.Server, *, address: tuple[str, int], tls: ssl.SSLContext | None) -> asyncio.Server:
        """Bind to host (empty for all) and port. Raises OSError."""

        def accept() -> asyncio.Protocol:
            return _Connection(self, server, tls=tls)

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
                for connection in list(self.silent):
                    connection.abort()

    def admit(self, connection: _Connection, server: web.Server) -> None:
        """Add a connection, in place of another one at the limit; close it if all others are busy."""
        if self._is_stopping:
            # It was accepted before the listener was closed.
            connection.abort()
            return
        self.silent[connection] = None
        # Many connections may be accepted before one that is closed here is lost.
        active = {
            handler: None
            for handler in server.connections
            if handler.transport is not None and not handler.transport.is_closing()
        }
        if len(self.silent) + len(active) <= MAX_CONNECTIONS:
            return
        slow = next(
            (handler for handler in self._running if handler in active and not self._is_complete(handler)), None
        )
        idle = next((handler for handler in active if handler not in self._running), None)
        oldest = next(iter(self.silent))
        if slow is not None:
            self._end(slow)
        elif oldest is connection and idle is not None:
            self._end(idle)
        else:
            del self.silent[oldest]
            oldest.abort()

    def _is_complete(self, handler: RequestHandler) -> bool:
        request = self._running.get(handler)
        return request is not None and request.content.is_eof()

    def _end(self, handler: RequestHandler) -> None:
        """Close a connection, with a response to an incomplete request."""
        is_running = handler in self._running
        self.forget_head(handler)
        transport = handler.transport
        if transport is None or transport.is_closing():
            return
        if is_running:
            transport.write(_LATE_RESPONSE)
        # A client that does not close its side must not hold the memory of a TLS connection.
        transport.abort()


class _Connection(asyncio.Protocol):
    """A connection, which gets an HTTP handler at its first byte."""

    def __init__(self, limit: ConnectionLimit, server: web.Server, *, tls: ssl.SSLContext | None) -> None:
        self._limit = limit
        self._server = server
        self._tls = tls
        #: None until the handshake is complete.
        self._transport: asyncio.Transport | None = None
        self._received = b""
        self._handler: RequestHandler | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Admit the connection."""
        accepted = cast("asyncio.Transport", transport)
        self.abort = accepted.abort
        self._timer = asyncio.get_running_loop().call_later(HEAD_TIMEOUT, accepted.abort)
        self._limit.admit(self, self._server)
        if self._tls is None:
            self._transport = accepted
        elif not accepted.is_closing():
            accepted.pause_reading()
            self._limit.handshakes.create_task(self._start_tls(accepted, self._tls))

    def data_received(self, data: bytes) -> None:
        """Forward to the handler; the handshake may still have to return its transport."""
        if self._handler is not None:
            self._limit.received(self._handler)
            self._handler.data_received(data)
            return
        self._received += data
        if self._transport is not None:
            self._add_handler(self._transport)

    def eof_received(self) -> None:
        """Forward to the handler."""
        if self._handler is not None:
            self._handler.eof_received()

    def pause_writing(self) -> None:
        """Forward to the handler."""
        if self._handler is not None:
            self._handler.pause_writing()

    def resume_writing(self) -> None:
        """Forward to the handler."""
        if self._handler is not None:
            self._handler.resume_writing()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Forget the connection."""
        self._end_silence()
        if self._handler is not None:
            self._limit.forget_head(self._handler)
            self._handler.connection_lost(exc)

    async def _start_tls(self, accepted: asyncio.Transport, tls: ssl.SSLContext) -> None:
        loop = asyncio.get_running_loop()
        # A transport that is aborted before the handshake would never report it.
        if not accepted.is_closing():
            with suppress(OSError):
                self._transport = await loop.start_tls(accepted, self, tls, server_side=True)
        if self._transport is None or self._transport.is_closing():
            self._end_silence()
        elif self._received:
            self._add_handler(self._transport)

    def _add_handler(self, transport: asyncio.Transport) -> None:
        self._end_silence()
        self._handler = self._server()
        self._limit.expect_head(self._handler, until=self._timer.when())
        self._handler.connection_made(transport)
        self._handler.data_received(self._received)
        self._received = b""

    def _end_silence(self) -> None:
        self._timer.cancel()
        self._limit.silent.pop(self, None)
