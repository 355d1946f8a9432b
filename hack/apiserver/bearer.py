"""Requests in somebody's name, for clients in the same process."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from upgrade_manager.kube.transport import Request, Response, Stream, Transport


class Bearer:
    """A `Transport` that adds a token to every request, so that access rules apply as over HTTPS."""

    def __init__(self, inner: Transport, *, token: str) -> None:
        self._inner = inner
        self._token = token

    async def send(self, request: Request) -> Response:
        """Send it with the token. Raises Transient."""
        return await self._inner.send(self._signed(request))

    @asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[Stream]:
        """Open it with the token. Raises Transient."""
        async with self._inner.open(self._signed(request)) as stream:
            yield stream

    def _signed(self, request: Request) -> Request:
        return replace(request, headers=dict(request.headers) | {"authorization": f"Bearer {self._token}"})
