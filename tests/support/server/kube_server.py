"""A transport with scripted responses, which records requests and their times."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import pytest

from upgrade_manager.kube.errors import Transient
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.transport import Request, Response, Stream


@asynccontextmanager
async def background(coroutine: Coroutine[Any, Any, Any]) -> AsyncIterator[asyncio.Task[Any]]:
    """Run a coroutine that ends only by cancellation."""
    task = asyncio.create_task(coroutine)
    try:
        yield task
    finally:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


class FedStream:
    """A stream whose chunks a test provides, now or later."""

    def __init__(
        self, *pieces: bytes | Exception | None, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        self.status = status
        self.headers: Mapping[str, str] = headers or {}
        self._pieces: asyncio.Queue[bytes | Exception | None] = asyncio.Queue()
        self.feed(*pieces)

    def feed(self, *pieces: bytes | Exception | None) -> None:
        """Add chunks; an exception breaks the stream, None ends it."""
        for piece in pieces:
            self._pieces.put_nowait(piece)

    async def chunks(self) -> AsyncIterator[bytes]:
        while (piece := await self._pieces.get()) is not None:
            if isinstance(piece, Exception):
                raise piece
            yield piece


Reply: TypeAlias = Response | FedStream | Exception | float


class ScriptedTransport:
    """Responds to lists, streaming lists, watches and other requests from four queues, or from one function.

    A number in a queue delays the next reply by so many seconds. Further watches stay open; further streaming lists
    are rejected, as by a server without them.
    """

    def __init__(
        self,
        handler: Callable[[Request], Reply] | None = None,
        *,
        lists: Iterable[Reply] = (),
        watches: Iterable[Reply] = (),
        streams: Iterable[Reply] = (),
        others: Iterable[Reply] = (),
    ) -> None:
        self.requests: list[Request] = []
        self.times: list[float] = []
        self.lists = deque(lists)
        self.watches = deque(watches)
        self.streams = deque(streams)
        self.others = deque(others)
        self.open_streams = 0
        self._handler = handler

    async def send(self, request: Request) -> Response:
        self._record(request)
        reply = await self._next(request, self.lists or self.others)
        assert isinstance(reply, Response), reply
        return reply

    @asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[Stream]:
        self._record(request)
        query = dict(request.query)
        is_list = "sendInitialEvents" in query
        queue = self.streams if is_list else self.watches
        if "watch" not in query:
            queue = self.lists or self.others or self.watches
        if queue or self._handler:
            reply = await self._next(request, queue)
        else:
            reply = unsupported() if is_list else FedStream()
        if isinstance(reply, Response):
            reply = FedStream(reply.body, None, status=reply.status, headers=reply.headers)
        assert isinstance(reply, FedStream), reply
        self.open_streams += 1
        try:
            yield reply
        finally:
            self.open_streams -= 1

    @property
    def queries(self) -> list[dict[str, str]]:
        """The query of each request."""
        return [dict(request.query) for request in self.requests]

    @property
    def gaps(self) -> list[float]:
        """Seconds between requests."""
        return [later - earlier for earlier, later in zip(self.times, self.times[1:], strict=False)]

    def _record(self, request: Request) -> None:
        self.requests.append(request)
        self.times.append(asyncio.get_running_loop().time())

    async def _next(self, request: Request, queue: deque[Reply]) -> Reply:
        reply: Reply
        if self._handler is not None:
            reply = self._handler(request)
        else:
            assert queue, f"nothing scripted for {request.method} {request.path} {request.query}"
            reply = queue.popleft()
        while isinstance(reply, float):
            await asyncio.sleep(reply)
            reply = queue.popleft()
        if isinstance(reply, Exception):
            raise reply
        return reply


def success(body: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a response with a JSON body."""
    return Response(status=status, headers=headers or {}, body=json.dumps(body).encode())


def status_object(code: int, reason: str = "", **more: Any) -> Object:
    """Return a Status object, the body of an error."""
    return {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, **more}


def failure(code: int, reason: str = "", *, retry_after: int | None = None, **details: Any) -> Response:
    headers = {} if retry_after is None else {"retry-after": str(retry_after)}
    return success(status_object(code, reason, message="no", details=details), status=code, headers=headers)


def listing(*items: Object, version: str = "10", continues: str = "", kind: str = "NodeList") -> Response:
    """Return the response to a list."""
    meta = {"resourceVersion": version, **({"continue": continues} if continues else {})}
    return success({"kind": kind, "apiVersion": "v1", "metadata": meta, "items": list(items)})


def node(name: str, version: str | int = 1, *, uid: str = "", **more: Any) -> Object:
    meta = {"name": name, "uid": uid or f"uid-{name}", "resourceVersion": str(version)}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, **more}


def event(type_: str, obj: object) -> bytes:
    """Return a line of a watch."""
    return json.dumps({"type": type_, "object": obj}).encode() + b"\n"


def bookmark(version: str | int) -> bytes:
    """Return a bookmark for nodes."""
    return event("BOOKMARK", {"apiVersion": "v1", "kind": "Node", "metadata": {"resourceVersion": str(version)}})


def initial_end(version: str | int) -> bytes:
    """Return the bookmark that ends the initial events of a streaming list."""
    meta = {"resourceVersion": str(version), "annotations": {"k8s.io/initial-events-end": "true"}}
    return event("BOOKMARK", {"apiVersion": "v1", "kind": "Node", "metadata": meta})


def unsupported() -> Response:
    """Return the response of a server without the WatchList feature gate."""
    cause = {"reason": "FieldValueForbidden", "message": "Forbidden: no", "field": "sendInitialEvents"}
    return failure(422, "Invalid", group="meta.k8s.io", kind="ListOptions", causes=[cause])


def reset() -> Transient:
    """Return what a transport raises for a broken connection."""
    return Transient("the connection broke")
