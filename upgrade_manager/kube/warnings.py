"""The warnings of responses, which kubectl prints, and commands that write for a user: cli/session.py."""

from __future__ import annotations

import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from upgrade_manager.kube.transport import Request, Response, Stream, Transport

#: The code of a warning for people, an agent, and the text in quotes (RFC 7234, 5.5).
_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")


class WarnedTransport:
    """A transport that shows the warnings of responses."""

    def __init__(self, inner: Transport, show: Callable[[str], None]) -> None:
        self._inner = inner
        self._show = show

    async def send(self, request: Request) -> Response:
        """See Transport."""
        response = await self._inner.send(request)
        for text in warnings_in(response.headers.get("warning", "")):
            self._show(text)
        return response

    @asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[Stream]:
        """See Transport."""
        async with self._inner.open(request) as stream:
            yield stream


def warnings_in(header: str) -> Iterator[str]:
    """Yield the texts of the header, whose warnings are separated by commas."""
    for text in _WARNING.findall(header):
        yield _ESCAPED.sub(r"\1", text)
