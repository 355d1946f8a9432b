"""Requests of an administrator in somebody else's name, for clients in the same process."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from upgrade_manager.kube.transport import Request, Response, Stream, Transport


class ActingAs:
    """A `Transport` that impersonates, so that a user's rights apply and no more, on whatever API server."""

    def __init__(self, inner: Transport, *, user: str) -> None:
        self._inner = inner
        self._user = user

    async def send(self, request: Request) -> Response:
        """Send it in the user's name. Raises Transient."""
        return await self._inner.send(self._signed(request))

    @asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[Stream]:
        """Open it in the user's name. Raises Transient."""
        async with self._inner.open(self._signed(request)) as stream:
            yield stream

    def _signed(self, request: Request) -> Request:
        return replace(request, headers=dict(request.headers) | {"impersonate-user": self._user})
