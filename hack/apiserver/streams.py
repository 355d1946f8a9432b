"""Answers that are handed out piece by piece.

No generators: one that its reader leaves half-way would be finished by the event loop in a task of its own, some time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from hack.apiserver.status import JSON_HEADERS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from hack.apiserver.watch import Watch
    from upgrade_manager.kube.transport import Response


class Pieces(Protocol):
    """Where the pieces of an answer come from."""

    async def next(self) -> bytes | None:
        """The next piece; None when there will be no more. Raises Transient when the source breaks."""
        ...


class ChunkStream:
    """Pieces as a `Stream`."""

    def __init__(self, pieces: Pieces, *, status: int, headers: Mapping[str, str]) -> None:
        self._pieces = pieces
        self.status = status
        self.headers = headers

    def chunks(self) -> AsyncIterator[bytes]:
        """The pieces as they come."""
        return self

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        piece = await self._pieces.next()
        if piece is None:
            raise StopAsyncIteration
        return piece


class WatchStream(ChunkStream):
    """A watch as a `Stream`, which its reader closes."""

    def __init__(self, watch: Watch) -> None:
        super().__init__(watch, status=200, headers=JSON_HEADERS)
        self._watch = watch

    def close(self) -> None:
        """The reader has left."""
        self._watch.close()


class WholeStream:
    """A complete answer as a `Stream`."""

    def __init__(self, response: Response) -> None:
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers
        self._body = response.body

    def chunks(self) -> AsyncIterator[bytes]:
        """The body, once."""
        return self

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        body, self._body = self._body, b""
        if not body:
            raise StopAsyncIteration
        return body
