"""Impersonated requests of an administrator, for clients in the same process."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from upgrade_manager.kube.transport import Request, Response, Stream, Transport


class ActingAs:
    """A `Transport` that impersonates a user, so that exactly that user's RBAC rules apply."""

    def __init__(self, inner: Transport, *, user: str) -> None:
        self._inner = inner
        self._user = user

    async def send(self, request: Request) -> Response:
        """Send the request as the user. Raises Transient."""
        return await self._inner.send(self._signed(request))

    @asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[Stream]:
        """Open a stream as the user. Raises Transient."""
        async with self._inner.open(self._signed(request)) as stream:
            yield stream

    def _signed(self, request: Request) -> Request:
        return replace(request, headers=dict(request.headers) | {"impersonate-user": self._user})
