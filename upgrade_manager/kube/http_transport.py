"""The production transport: HTTP/1.1 with aiohttp.

Watches have their own session, because they would exhaust the connection pool of ordinary requests, and so have the
requests of the leader election, which must not wait for others. TCP keep-alive and TCP_USER_TIMEOUT detect dead peers.
aiohttp's exceptions do not leave this module, and no content is logged.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Self, TypeAlias
from urllib.parse import urlencode

import aiohttp
from yarl import URL

from upgrade_manager.kube.clock import loop_time
from upgrade_manager.kube.credentials import Authenticator
from upgrade_manager.kube.errors import REFUSED, UNTRUSTED, Transient
from upgrade_manager.kube.transport import Request, Response

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from contextlib import AbstractAsyncContextManager
    from types import SimpleNamespace, TracebackType

    from upgrade_manager.kube.config import ClientConfig
    from upgrade_manager.kube.credentials import Credentials
    from upgrade_manager.kube.transport import Stream, Transport

#: Called after each attempt: the method, the host, the status or `<error>`, and the seconds until the headers.
OnResponse: TypeAlias = Callable[[str, str, str, float], None]

#: Concurrent ordinary requests; further ones wait.
_POOL_SIZE = 32
#: Seconds that an unused connection is kept; the API server drops it after 90.
_KEEP_ALIVE = 45.0
#: Seconds for a TCP connection.
_CONNECT_TIMEOUT = 10.0
_UNAUTHORIZED = 401
#: aiohttp's own errors, and those of sockets and TLS that it does not wrap.
_CONNECTION_ERRORS = (aiohttp.ClientError, OSError, TimeoutError, EOFError)


def _ignore(*_: object) -> None:
    """Record no metrics."""


class HttpTransport:
    """Sends requests to one API server; use it as an async context manager.

    It limits only the time to connect; `retry` and `watch` limit the rest. After a 401 it renews the credentials and
    sends the request once more.
    """

    def __init__(self, config: ClientConfig, *, on_response: OnResponse = _ignore) -> None:
        self._server = config.server
        self._host = URL(config.server).authority
        self._config = config
        self._on_response = on_response
        self._authenticator: Authenticator
        self._requests: aiohttp.ClientSession
        self._watches: aiohttp.ClientSession
        self._reserved: aiohttp.ClientSession

    async def __aenter__(self) -> Self:
        """Load the credentials. Raises ConfigError for invalid certificates."""
        self._authenticator = await Authenticator.create(self._config)
        self._requests = _session(_POOL_SIZE)
        self._watches = _session(0)
        self._reserved = _session(1)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._watches.close()
        await self._reserved.close()
        await self._requests.close()
        await self._authenticator.aclose()

    async def send(self, request: Request) -> Response:
        """Send a request and read the whole response. Raises Transient."""
        return await self._send(self._requests, request)

    def reserved(self) -> Transport:
        """Return a transport with a connection to itself; the elector uses it, one request at a time.

        A request that fails or is cancelled closes its connection. As there is no other, the next one opens a new
        connection: no connection that has died in the pool can fail a second request.
        """
        return _ReservedTransport(self)

    async def send_reserved(self, request: Request) -> Response:
        """Send a request on the reserved connection. Raises Transient."""
        return await self._send(self._reserved, request)

    async def _send(self, session: aiohttp.ClientSession, request: Request) -> Response:
        try:
            async with self._exchange(session, request) as response:
                body = await response.read()
                return Response(status=response.status, headers=_lowered(response.headers), body=body)
        except _CONNECTION_ERRORS as error:
            raise _transient(error) from error

    @asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[Stream]:
        """Send a request and stream its response. Raises Transient."""
        async with AsyncExitStack() as stack:
            try:
                response = await stack.enter_async_context(self._exchange(self._watches, request))
            except _CONNECTION_ERRORS as error:
                raise _transient(error) from error
            yield _HttpStream(response)

    @asynccontextmanager
    async def _exchange(
        self, session: aiohttp.ClientSession, request: Request
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        credentials = await self._authenticator.credentials()
        response = await self._send_once(session, request, credentials)
        if response.status == _UNAUTHORIZED and "authorization" not in request.headers:
            renewed = await self._authenticator.renew(credentials)
            if renewed is not credentials:
                _abort(response)
                response = await self._send_once(session, request, renewed)
        try:
            yield response
        finally:
            # A connection that was read to its end returns to the pool.
            response.release() if response.content.is_eof() else _abort(response)

    async def _send_once(
        self, session: aiohttp.ClientSession, request: Request, credentials: Credentials
    ) -> aiohttp.ClientResponse:
        started = loop_time()
        code = "<error>"
        try:
            response = await session.request(
                request.method,
                URL(f"{self._server}{request.path}?{urlencode(request.query)}".rstrip("?"), encoded=True),
                headers=_headers(credentials, request),
                data=request.body or None,
                allow_redirects=False,
                ssl=credentials.tls,
                server_hostname=credentials.server_name or None,
                proxy=credentials.proxy or None,
                trace_request_ctx=request.fence,
            )
            code = str(response.status)
        finally:
            self._on_response(request.method, self._host, code, loop_time() - started)
        return response


class _ReservedTransport:
    """The reserved connection of an `HttpTransport`; streams are those of its owner."""

    def __init__(self, owner: HttpTransport) -> None:
        self._owner = owner

    async def send(self, request: Request) -> Response:
        """Send a request and read the whole response. Raises Transient."""
        return await self._owner.send_reserved(request)

    def open(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        """Send a request and stream its response. Raises Transient."""
        return self._owner.open(request)


class _HttpStream:
    """A response of aiohttp as a `Stream`."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status
        self.headers: Mapping[str, str] = _lowered(response.headers)

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield bytes as they arrive. Raises Transient."""
        try:
            async for chunk in self._response.content.iter_any():
                yield chunk
        except _CONNECTION_ERRORS as error:
            raise _transient(error) from error


def _abort(response: aiohttp.ClientResponse) -> None:
    """Close the connection without a TLS shutdown, which takes half a minute with a dead peer."""
    transport = response.connection.transport if response.connection is not None else None
    response.close()
    if transport is not None:
        transport.abort()


def _session(pool_size: int) -> aiohttp.ClientSession:
    """Return a session without cookies, .netrc and proxies from the environment (NO_PROXY would ignore CIDRs)."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=pool_size, socket_factory=_socket, keepalive_timeout=_KEEP_ALIVE),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_TIMEOUT),
        trace_configs=[_fencing()],
    )


def _fencing() -> aiohttp.TraceConfig:
    """Return a configuration that checks the fence of each request when its connection is ready.

    Headers are sent with the body, and before Python 3.12 another task sends that: it is checked there again.
    """

    async def check(_session: aiohttp.ClientSession, context: SimpleNamespace, _params: object) -> None:
        context.trace_request_ctx()

    config = aiohttp.TraceConfig()
    config.on_request_headers_sent.append(check)
    config.on_request_chunk_sent.append(check)
    return config


def _socket(address: aiohttp.AddrInfoType) -> socket.socket:
    """Return a socket that detects a dead peer within 45 s."""
    family, kind, protocol, _, _ = address
    created = socket.socket(family, kind, protocol)
    created.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3), ("TCP_USER_TIMEOUT", 45000)):
        if hasattr(socket, option):
            created.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return created


def _transient(error: BaseException) -> Transient:
    """Return the error for a failed connection, which names the server but nothing that was sent."""
    if isinstance(error, aiohttp.ClientConnectorError) and not isinstance(error.os_error, ConnectionResetError):
        place = f"{error.host}:{error.port}"
        is_untrusted = isinstance(error, aiohttp.ClientConnectorCertificateError)
        return Transient(
            f"the API server at {place} cannot be reached: {_cause(error)}",
            reason=UNTRUSTED if is_untrusted else REFUSED,
        )
    return Transient(f"the connection to the API server failed: {type(error).__name__}")


def _cause(error: aiohttp.ClientConnectorError) -> str:
    """Return the reason; asyncio's text of a refusal repeats the address."""
    if isinstance(error.os_error, ConnectionRefusedError):
        return "Connection refused"
    return error.strerror or str(error.os_error)


def _headers(credentials: Credentials, request: Request) -> list[tuple[str, str]]:
    """Return all headers; a request with another authorization gets no impersonation either."""
    added = () if "authorization" in request.headers else credentials.headers
    return [*added, *request.headers.items()]


def _lowered(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers with lower-case names; repeated ones, such as warnings, are joined by commas."""
    lowered: dict[str, str] = {}
    for name, value in headers.items():
        key = name.lower()
        lowered[key] = f"{lowered[key]}, {value}" if key in lowered else value
    return lowered
