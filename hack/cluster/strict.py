"""Strict field validation for all writes, which finds mistyped field names."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from upgrade_manager.kube.transport import Request, Response, Stream, Transport

_WRITES = frozenset({"POST", "PUT", "PATCH"})
_OPTION = "fieldValidation"


class Strict:
    """A `Transport` that requests strict field validation: unknown and duplicate fields are refused.

    In production the server warns: an upgrade must not fail because a newer version of a kind lacks a field.
    """

    def __init__(self, inner: Transport) -> None:
        self._inner = inner

    async def send(self, request: Request) -> Response:
        """Send the request, writes with strict validation. Raises Transient."""
        return await self._inner.send(_strict(request))

    @asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[Stream]:
        """Open a stream, writes with strict validation. Raises Transient."""
        async with self._inner.open(_strict(request)) as stream:
            yield stream


def _strict(request: Request) -> Request:
    if request.method not in _WRITES or any(key == _OPTION for key, _ in request.query):
        return request
    return replace(request, query=(*request.query, (_OPTION, "Strict")))
