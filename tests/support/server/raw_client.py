"""A client without retries or errors, for tests of API servers and transports."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from upgrade_manager.kube.transport import Request, Response, Transport

PATCHES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}


@dataclass(frozen=True, slots=True)
class JsonResponse:
    """A response with its body parsed."""

    status: int
    body: Any
    headers: Mapping[str, str]

    @property
    def version(self) -> str:
        """The resourceVersion of the object or list."""
        return str(self.body["metadata"]["resourceVersion"])

    @property
    def names(self) -> list[str]:
        """The names of a list's items."""
        return [item["metadata"]["name"] for item in self.body["items"]]


class Events:
    """The events of an open watch, one by one."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = b""
        self._lines: list[bytes] = []

    async def next(self) -> dict[str, Any]:
        """Return the next event. Raises StopAsyncIteration when the stream has ended."""
        while not self._lines:
            self._rest += await anext(self._chunks)
            *self._lines, self._rest = self._rest.split(b"\n")
        event: dict[str, Any] = json.loads(self._lines.pop(0))
        return event

    async def take(self, count: int) -> list[tuple[str, str]]:
        """Return type and name of so many events."""
        events = [await self.next() for _ in range(count)]
        return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]

    async def rest(self) -> list[dict[str, Any]]:
        """Return all events until the stream ends."""
        events = []
        while True:
            try:
                events.append(await self.next())
            except StopAsyncIteration:
                return events


@dataclass(frozen=True, slots=True)
class RawClient:
    """Sends requests and parses responses."""

    transport: Transport
    headers: Mapping[str, str] = field(default_factory=dict)

    async def call(self, method: str, path: str, body: Any = None, *, kind: str = "", **query: str) -> JsonResponse:
        """Send one request; `kind` names the patch format."""
        response = await self.transport.send(self.request(method, path, body, kind=kind, **query))
        return parse(response)

    def request(self, method: str, path: str, body: Any = None, *, kind: str = "", **query: str) -> Request:
        media = {"content-type": PATCHES[kind] if kind else "application/json"} if body is not None else {}
        return Request(
            method=method,
            path=path,
            query=tuple(query.items()),
            headers={"accept": "application/json"} | media | dict(self.headers),
            body=json.dumps(body).encode() if body is not None else b"",
        )

    async def get(self, path: str, **query: str) -> JsonResponse:
        return await self.call("GET", path, **query)

    async def post(self, path: str, body: Any, **query: str) -> JsonResponse:
        return await self.call("POST", path, body, **query)

    async def put(self, path: str, body: Any, **query: str) -> JsonResponse:
        return await self.call("PUT", path, body, **query)

    async def patch(self, path: str, body: Any, *, kind: str = "merge", **query: str) -> JsonResponse:
        return await self.call("PATCH", path, body, kind=kind, **query)

    async def delete(self, path: str, body: Any = None, **query: str) -> JsonResponse:
        return await self.call("DELETE", path, body, **query)

    @asynccontextmanager
    async def watch(self, path: str, **query: str) -> AsyncIterator[Events]:
        """Open a watch."""
        async with self.transport.open(self.request("GET", path, watch="true", **query)) as stream:
            yield Events(stream.chunks())


def parse(response: Response) -> JsonResponse:
    """Parse the body if it is JSON."""
    try:
        body = json.loads(response.body)
    except ValueError:
        body = response.body
    return JsonResponse(status=response.status, body=body, headers=response.headers)
