"""A connection of an HTTP server, which `connection_limit` admits, and its state."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from enum import IntEnum
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    import ssl

    from aiohttp import web
    from aiohttp.web_protocol import RequestHandler

    from upgrade_manager.runtime.connection_limit import ConnectionLimit

#: Seconds in which a client closes its side of a TLS connection that the server has closed.
_CLOSE_TIMEOUT = 5.0
_LATE_RESPONSE = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class State(IntEnum):
    """The states of a connection, in the order in which connections give way."""

    #: The server has closed it, but the client has not received everything.
    CLOSING = 1
    #: A request has begun whose head or body is incomplete.
    SLOW = 2
    #: It has not sent a byte yet, or its TLS handshake is not complete.
    SILENT = 3
    #: Between two requests, or its client receives a response.
    IDLE = 4
    #: A complete request is being handled.
    BUSY = 5


class Connection(asyncio.Protocol):
    """A connection, which gets an HTTP handler at its first byte."""

    def __init__(self, limit: ConnectionLimit, server: web.Server, *, tls: ssl.SSLContext | None) -> None:
        self._limit = limit
        self._server = server
        self._tls = tls
        #: None until the handshake is complete.
        self._transport: asyncio.Transport | None = None
        self._received = b""
        self._handler: RequestHandler | None = None
        #: True from the first byte of a request to its response.
        self._is_running = False
        #: None until the head of the running request is complete.
        self._request: web.BaseRequest | None = None
        #: Ends the connection unless a head is complete.
        self._timer: asyncio.TimerHandle | None = None

    @property
    def state(self) -> State:
        """The state."""
        if self._handler is None:
            return State.SILENT
        if self._transport is None or self._transport.is_closing():
            return State.CLOSING
        if not self._is_running:
            return State.IDLE
        return State.BUSY if self._request is not None and self._request.content.is_eof() else State.SLOW

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Admit the connection."""
        self._accepted = cast("asyncio.Transport", transport)
        self.peer = self._limit.peers.of(transport)
        #: Higher than that of another connection in the same state for a longer time.
        self.since = self._limit.step()
        self._expect_head()
        self._limit.admit(self)
        if self._tls is None:
            self._transport = self._accepted
        elif not self._accepted.is_closing():
            self._accepted.pause_reading()
            self._limit.handshakes.create_task(self._start_tls(self._tls))

    def data_received(self, data: bytes) -> None:
        """Forward to the handler; the handshake may still have to return its transport."""
        if self._handler is not None:
            if not self._is_running:
                self._start_request()
                self._expect_head()
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
        self._forget()
        if self._handler is not None:
            self._limit.remove_handler(self._handler)
            self._handler.connection_lost(exc)

    def begin(self, request: web.BaseRequest) -> None:
        """Record a request whose head is complete."""
        self._stop_timer()
        # A pipelined request begins without another byte.
        self._start_request()
        self._request = request

    def end_request(self) -> None:
        """Record that the response to the request is known."""
        self._is_running, self._request = False, None
        self.since = self._limit.step()

    def end(self) -> None:
        """Close the connection, with a response to an incomplete request."""
        transport = self._transport or self._accepted
        if self.state is State.SLOW:
            transport.write(_LATE_RESPONSE)
        self._forget()
        # A client that does not close its side must not hold the memory of a TLS connection.
        transport.abort()

    def _start_request(self) -> None:
        if not self._is_running:
            self._is_running = True
            self.since = self._limit.step()

    def _expect_head(self) -> None:
        self._timer = self._limit.expect_head(self.end)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _forget(self) -> None:
        self._stop_timer()
        self._limit.remove(self)

    async def _start_tls(self, tls: ssl.SSLContext) -> None:
        accepted, loop = self._accepted, asyncio.get_running_loop()
        # A transport that is aborted before the handshake would never report it.
        if not accepted.is_closing():
            with suppress(OSError):
                self._transport = await loop.start_tls(
                    accepted, self, tls, server_side=True, ssl_shutdown_timeout=_CLOSE_TIMEOUT
                )
        if self._transport is None or self._transport.is_closing():
            self._forget()
        elif self._received:
            self._add_handler(self._transport)

    def _add_handler(self, transport: asyncio.Transport) -> None:
        self._handler = self._server()
        self._limit.add_handler(self._handler, self)
        self._start_request()
        self._handler.connection_made(transport)
        self._handler.data_received(self._received)
        self._received = b""
