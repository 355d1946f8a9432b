"""Unpacks a zstd archive of images as a stream, and refuses entries that an archive of images never has."""

from __future__ import annotations

import asyncio
import tarfile
from typing import TYPE_CHECKING

import zstandard

from upgrade_manager.toolkit.errors import BadArchive

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

#: Bytes that are unpacked at once.
_PIECE = 1024 * 1024
_BLOCK = tarfile.BLOCKSIZE


async def unpacked(path: Path) -> AsyncGenerator[bytes]:
    """Yield the tar stream. Raises BadArchive."""
    checker = EntryChecker(path.name)
    with path.open("rb") as file:
        reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
        while True:
            try:
                piece = await asyncio.to_thread(reader.read, _PIECE)
            except zstandard.ZstdError as error:
                raise BadArchive(f"{path.name} is not a complete zstd stream: {error}") from error
            if not piece:
                break
            checker.feed(piece)
            yield piece
    checker.finish()


class EntryChecker:
    """Reads the headers of a tar stream that passes by."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._buffer = bytearray()
        #: Bytes of the current entry's content that have not passed.
        self._content = 0
        self._ended = False

    def feed(self, piece: bytes) -> None:
        """Check the headers in the next bytes. Raises BadArchive."""
        view = memoryview(piece)
        while view:
            if self._content:
                passed = min(self._content, len(view))
                self._content -= passed
                view = view[passed:]
                continue
            taken = view[: _BLOCK - len(self._buffer)]
            self._buffer += taken
            view = view[len(taken) :]
            if len(self._buffer) == _BLOCK:
                self._header(bytes(self._buffer))
                self._buffer.clear()

    def finish(self) -> None:
        """Raise BadArchive for a stream that ends before the archive does."""
        if self._content or self._buffer or not self._ended:
            raise BadArchive(f"{self._name} ends in the middle of an entry")

    def _header(self, block: bytes) -> None:
        if not any(block):
            self._ended = True
            return
        try:
            entry = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        except tarfile.HeaderError as error:
            raise BadArchive(f"{self._name} is not a tar archive: {error}") from error
        if entry.isdev() or entry.name.startswith("/") or ".." in entry.name.split("/"):
            raise BadArchive(f"{self._name}: entry {entry.name!r} is not a plain file below the archive's root")
        self._content = -(-entry.size // _BLOCK) * _BLOCK
