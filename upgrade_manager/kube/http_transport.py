"""The transport of production: HTTP/1.1 over aiohttp.

Two sessions, because a watch keeps its connection: with one pool, as many watches as it has places would leave none
for ordinary requests. Dead peers show themselves by TCP keep-alive and TCP_USER_TIMEOUT below, and by a limit on
silence above. No exception of aiohttp's leaves this module, and nothing here logs what is sent or received.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Self
from urllib.parse import urlencode

import aiohttp
from yarl import URL

from upgrade_manager.kube.clock import loop_time
from upgrade_manager.kube.credentials import Login
from upgrade_manager.kube.errors import REFUSED, TIMED_OUT, Transient
from upgrade_manager.kube.transport import Request, Response

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from types import TracebackType

    from upgrade_manager.kube.config import Connection
    from upgrade_manager.kube.credentials import Access
    from upgrade_manager.kube.observer import RequestObserver
    from upgrade_manager.kube.transport import Stream

#: Ordinary requests at a time; further ones wait.
_POOL = 32
#: Seconds that an unused connection is kept; the API server drops it after 90.
_KEEP = 45.0
#: Seconds for a TCP connection.
_CONNECT_TIMEOUT = 10.0
_UNAUTHORIZED = 401
#: What a broken exchange can raise. aiohttp's own errors, and those of sockets and TLS that it lets through.
_BROKEN = (aiohttp.ClientError, OSError, TimeoutError, EOFError)


class HttpTransport:
    """Sends requests to the API server of a connection; use it as an async context manager.

    Credentials are renewed when they are old or the server answers 401; the request is then sent once more.
    """

    def __init__(self, connection: Connection, *, observer: RequestObserver) -> None:
        self._server = connection.server
        self._host = URL(connection.server).authority
        self._connection = connection
        self._observer = observer
        self._login: Login
        self._requests: aiohttp.ClientSession
        self._watches: aiohttp.ClientSession

    async def __aenter__(self) -> Self:
        """Build what takes a while. Raises ConfigError when the certificates are of no use."""
        self._login = await Login.begin(self._connection)
        self._requests = _session(_POOL)
        self._watches = _session(0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._watches.close()
        await self._requests.close()

    async def send(self, request: Request) -> Response:
        """As the protocol says; the body is read to its end."""
        limits = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_TIMEOUT)
        try:
            async with asyncio.timeout(request.timeout), self._exchange(self._requests, request, limits) as answer:
                body = await answer.read()
                return Response(status=answer.status, headers=_lowered(answer.headers), body=body)
        except _BROKEN as error:
            raise _transient(error) from error

    @asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[Stream]:
        """As the protocol says; nothing limits how long the stream may last, but how long it may be silent."""
        limits = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_TIMEOUT, sock_read=request.idle_timeout)
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(request.timeout):
                    answer = await stack.enter_async_context(self._exchange(self._watches, request, limits))
            except _BROKEN as error:
                raise _transient(error) from error
            yield _HttpStream(answer)

    @asynccontextmanager
    async def _exchange(
        self, session: aiohttp.ClientSession, request: Request, limits: aiohttp.ClientTimeout
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        access = await self._login.access()
        answer = await self._ask(session, request, limits, access)
        if answer.status == _UNAUTHORIZED and "authorization" not in request.headers:
            renewed = await self._login.renewed(access)
            if renewed is not access:
                _drop(answer)
                answer = await self._ask(session, request, limits, renewed)
        try:
            yield answer
        finally:
            # Gives a connection that was read to its end back to the pool and drops any other.
            answer.release() if answer.content.is_eof() else _drop(answer)

    async def _ask(
        self, session: aiohttp.ClientSession, request: Request, limits: aiohttp.ClientTimeout, access: Access
    ) -> aiohttp.ClientResponse:
        started = loop_time()
        code = "<error>"
        try:
            answer = await session.request(
                request.method,
                URL(f"{self._server}{request.path}?{urlencode(request.query)}".rstrip("?"), encoded=True),
                headers={
                    **({"authorization": access.authorization} if access.authorization else {}),
                    **request.headers,
                },
                data=request.body or None,
                timeout=limits,
                allow_redirects=False,
                ssl=access.tls,
                server_hostname=access.server_name or None,
                proxy=access.proxy or None,
            )
            code = str(answer.status)
        finally:
            seconds = loop_time() - started
            self._observer.answered(method=request.method, host=self._host, code=code, seconds=seconds)
        return answer


class _HttpStream:
    """An answer of aiohttp's as the transport's protocol has it."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self._answer = answer
        self.status = answer.status
        self.headers: Mapping[str, str] = _lowered(answer.headers)

    async def chunks(self) -> AsyncIterator[bytes]:
        """As the protocol says."""
        try:
            async for chunk in self._answer.content.iter_any():
                yield chunk
        except _BROKEN as error:
            raise _transient(error) from error


def _drop(answer: aiohttp.ClientResponse) -> None:
    """Break the connection off: a TLS farewell would be waited for, half a minute long where nobody answers."""
    transport = answer.connection.transport if answer.connection is not None else None
    answer.close()
    if transport is not None:
        transport.abort()


def _session(places: int) -> aiohttp.ClientSession:
    """No cookies, no .netrc, no proxies from the environment, whose exceptions do not know address ranges."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=places, socket_factory=_socket, keepalive_timeout=_KEEP),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None),
    )


def _socket(address: aiohttp.AddrInfoType) -> socket.socket:
    """A socket whose peer is found dead within 45 s: silent for 15, then asked three times; or not acknowledging."""
    family, kind, protocol, _name, _address = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3), ("TCP_USER_TIMEOUT", 45000)):
        if hasattr(socket, option):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return made


def _transient(error: BaseException) -> Transient:
    """What a broken exchange means; the words name the kind of failure and the server, never what was sent."""
    if isinstance(error, TimeoutError):
        return Transient("the API server did not answer in time", reason=TIMED_OUT)
    if isinstance(error, aiohttp.ClientConnectorError) and not isinstance(error.os_error, ConnectionResetError):
        place = f"{error.host}:{error.port}"
        return Transient(
            f"the API server cannot be reached at {place}: {error.strerror or error.os_error}", reason=REFUSED
        )
    return Transient(f"the connection to the API server broke: {type(error).__name__}")


def _lowered(headers: Mapping[str, str]) -> dict[str, str]:
    """A header that comes more than once, as each warning of an API server does, counts as one list."""
    lowered: dict[str, str] = {}
    for name, value in headers.items():
        key = name.lower()
        lowered[key] = f"{lowered[key]}, {value}" if key in lowered else value
    return lowered
