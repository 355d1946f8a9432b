"""Streamed responses.

They are not generators, because the event loop finalizes an abandoned generator in a separate task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from hack.apiserver.watch import Watch
    from upgrade_manager.kube.transport import Response


class Pieces(Protocol):
    """The source of a response's chunks."""

    async def next(self) -> bytes | None:
        """Return the next chunk; None at the end. Raises Transient when the source breaks."""
        ...


class ChunkStream:
    """Chunks as a `Stream`."""

    def __init__(self, pieces: Pieces, *, status: int, headers: Mapping[str, str]) -> None:
        self._pieces = pieces
        self.status = status
        self.headers = headers

    def chunks(self) -> AsyncIterator[bytes]:
        """Yield the chunks as they arrive."""
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

    def __init__(self, watch: Watch, *, headers: Mapping[str, str]) -> None:
        super().__init__(watch, status=200, headers=headers)
        self._watch = watch

    def close(self) -> None:
        """Close the watch."""
        self._watch.close()


class WholeStream:
    """A complete response as a `Stream`."""

    def __init__(self, response: Response) -> None:
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers
        self._body = response.body

    def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body."""
        return self

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        body, self._body = self._body, b""
        if not body:
            raise StopAsyncIteration
        return body
