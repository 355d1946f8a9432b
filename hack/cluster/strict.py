"""Writes whose every field must be known: what a mistyped field name needs to be found."""

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
    """A `Transport` that has the API server refuse unknown and doubled fields, whoever sends them.

    Production leaves it to the server, which warns: an upgrade must not end because a newer kind lost a field.
    """

    def __init__(self, inner: Transport) -> None:
        self._inner = inner

    async def send(self, request: Request) -> Response:
        """Pass it on, strictly if it writes. Raises Transient."""
        return await self._inner.send(_strict(request))

    @asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[Stream]:
        """The same, piece by piece. Raises Transient."""
        async with self._inner.open(_strict(request)) as stream:
            yield stream


def _strict(request: Request) -> Request:
    if request.method not in _WRITES or any(key == _OPTION for key, _ in request.query):
        return request
    return replace(request, query=(*request.query, (_OPTION, "Strict")))
