"""An HTTPS server in front of a Transport, such as the embedded API server or a middleware.

HTTP/1.1 with keep-alive; watches are chunked and end when their client leaves. The Authorization header passes through;
a request without one gets an empty one, because the embedded server trusts requests without the header.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakSet

from aiohttp import web

from hack.apiserver.call import truthy
from upgrade_manager.kube.errors import Transient
from upgrade_manager.kube.transport import Request

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator
    from types import TracebackType

    from upgrade_manager.kube.transport import Stream, Transport

#: Headers that are forwarded, besides authorization.
_HEADERS = ("accept", "content-type", "user-agent", "if-none-match", "impersonate-user", "impersonate-uid")
#: Headers that may be repeated.
_LIST_HEADERS = ("impersonate-group",)
#: Prefix of headers with client-defined names.
_EXTRA = "impersonate-extra-"
_ANSWER_HEADERS = ("content-type", "retry-after", "warning", "location", "audit-id", "etag", "vary", "date")
#: Bytes; above the real server's limit, so that the server refuses.
_LARGEST_BODY = 16 * 1024 * 1024
#: Seconds that open requests get when the gateway closes.
_GRACE = 1.0
#: Seconds for a response of the backend; clients have their own deadlines.
_RESPONSE_TIMEOUT = 600.0


class Gateway:
    """Serves while its context is entered: `async with Gateway(server, tls=context) as gateway: gateway.url`."""

    def __init__(self, transport: Transport, *, tls: ssl.SSLContext, host: str = "127.0.0.1", port: int = 0) -> None:
        self._transport = transport
        self._tls = tls
        self._host = host
        self._port = port
        self._stack = AsyncExitStack()
        #: The tasks of open streams.
        self._streams: set[asyncio.Task[Any]] = set()
        #: The connections of requests so far.
        self._connections: WeakSet[asyncio.Transport] = WeakSet()
        self._closing = False

    @property
    def port(self) -> int:
        """Return the port, chosen by the system if none was given."""
        return self._port

    @property
    def url(self) -> str:
        """Return the URL."""
        return f"https://{self._host}:{self._port}"

    async def __aenter__(self) -> Self:
        application = web.Application(client_max_size=_LARGEST_BODY)
        application.router.add_route("*", "/{path:.*}", self._serve)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=_GRACE, handler_cancellation=True)
        await runner.setup()
        self._stack.push_async_callback(runner.cleanup)
        site = web.TCPSite(runner, self._host, self._port, ssl_context=self._tls)
        await site.start()
        self._port = runner.addresses[0][1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing = True
        for task in self._streams:
            task.cancel()
        await self._stack.aclose()
        # A client without a network does not answer the end of the TLS session, for which asyncio would wait.
        for connection in self._connections:
            connection.abort()

    async def _serve(self, incoming: web.Request) -> web.StreamResponse:
        if incoming.transport is not None:
            self._connections.add(incoming.transport)
        request = await _translated(incoming)
        try:
            async with self._transport.open(request) as stream:
                return await self._pass_on(incoming, request, stream)
        except Transient:
            # The client sees a broken connection, as without a gateway.
            if incoming.transport is not None:
                incoming.transport.abort()
            return web.Response(status=502)

    async def _pass_on(self, incoming: web.Request, request: Request, stream: Stream) -> web.StreamResponse:
        headers = {name: value for name, value in stream.headers.items() if name in _ANSWER_HEADERS}
        if not _is_watch(request):
            body = b"".join([chunk async for chunk in stream.chunks()])
            return web.Response(status=stream.status, headers=headers, body=body)
        answer = web.StreamResponse(status=stream.status, headers=headers)
        answer.enable_chunked_encoding()
        await answer.prepare(incoming)
        with self._open_stream() as task:
            try:
                async for chunk in stream.chunks():
                    await answer.write(chunk)
            except asyncio.CancelledError:
                # A disconnected client cancels too; only the gateway's shutdown ends the stream properly.
                if not self._closing:
                    raise
                task.uncancel()
        return answer

    @contextmanager
    def _open_stream(self) -> Iterator[asyncio.Task[Any]]:
        """Register the stream's task, so that shutdown can end it."""
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a request is served outside of a task")
        self._streams.add(task)
        try:
            yield task
        finally:
            self._streams.discard(task)


def _is_watch(request: Request) -> bool:
    return any(key == "watch" and truthy(value) for key, value in request.query)


async def _translated(incoming: web.Request) -> Request:
    headers = {name: ",".join(incoming.headers.getall(name)) for name in _HEADERS if name in incoming.headers}
    headers |= {name: ",".join(incoming.headers.getall(name)) for name in _LIST_HEADERS if name in incoming.headers}
    headers |= {name.lower(): value for name, value in incoming.headers.items() if name.lower().startswith(_EXTRA)}
    headers["authorization"] = incoming.headers.get("authorization", "")
    return Request(
        method=incoming.method,
        path=incoming.rel_url.raw_path,
        query=tuple(incoming.query.items()),
        headers=headers,
        body=await incoming.read(),
        timeout=_RESPONSE_TIMEOUT,
    )
