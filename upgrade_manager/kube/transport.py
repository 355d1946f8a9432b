"""The seam between us and the wire: a request goes in, a response or a stream comes out.

Production sends over aiohttp, tests hand the request to an API server in the same process, and anything that delays,
refuses, drops or counts stands in between as one more `Transport`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from contextlib import AbstractAsyncContextManager


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One HTTP request, without the host and the credentials, which are the transport's own."""

    method: str
    #: Absolute and percent-quoted, without the query.
    path: str
    #: In order; a key may appear more than once. Not quoted.
    query: tuple[tuple[str, str], ...] = ()
    #: Names in lower case: accept, content-type, user-agent; authorization only where a gateway passes it on.
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    #: Seconds for the whole exchange; for a stream, until its headers are there.
    timeout: float = 30.0
    #: Seconds without a byte after which an open stream counts as dead.
    idle_timeout: float = 90.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """A complete answer."""

    status: int
    #: Names in lower case.
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


class Stream(Protocol):
    """An answer that arrives piece by piece, as a watch's does."""

    @property
    def status(self) -> int:
        """The HTTP status; for 400 and above the chunks are the error's body."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Names in lower case."""
        ...

    def chunks(self) -> AsyncIterator[bytes]:
        """Bytes as they arrive, cut anywhere; ends when the server ends the stream, raises Transient when it breaks."""
        ...


class Transport(Protocol):
    """Sends requests. Every failure to get an answer is a `Transient`; an answer of any status is no failure."""

    async def send(self, request: Request) -> Response:
        """Send it and wait for the whole answer. Raises Transient."""
        ...

    def open(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        """Send it and hand out the answer while it arrives; leaving the context drops it. Raises Transient."""
        ...
