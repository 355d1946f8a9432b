"""The interface between the client and the wire: a request goes in, a response or a stream comes out.

Production sends over aiohttp; tests pass the request to an API server in the same process. Transports that delay,
refuse or count requests can be stacked on top.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from contextlib import AbstractAsyncContextManager


def no_fence() -> None:
    """Let the request pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One HTTP request, without the host and the credentials, which the transport adds."""

    method: str
    #: Absolute and percent-quoted, without the query.
    path: str
    #: In order and not quoted; a key may appear more than once.
    query: tuple[tuple[str, str], ...] = ()
    #: Names in lower case; an authorization header replaces the transport's credentials.
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    #: Seconds for the whole response; for a stream, for its headers.
    timeout: float = 30.0
    #: Called when the connection is ready, before the first byte is sent; raises Transient to refuse the request.
    fence: Callable[[], None] = field(default=no_fence, repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """A complete response."""

    status: int
    #: Names in lower case.
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


class Stream(Protocol):
    """A response that arrives in chunks, as that of a watch does."""

    @property
    def status(self) -> int:
        """The HTTP status; for 400 and above the chunks are the body of the error."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Names in lower case."""
        ...

    def chunks(self) -> AsyncIterator[bytes]:
        """Yield bytes as they arrive, split at any position. Raises Transient if the connection breaks."""
        ...


class Transport(Protocol):
    """Sends requests. A response of any status is a success; no response is a `Transient`."""

    async def send(self, request: Request) -> Response:
        """Send a request and read the whole response. Raises Transient."""
        ...

    def open(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        """Send a request and stream its response; leaving the context closes it. Raises Transient."""
        ...
