"""Unpacks a zstd archive of images as a stream, without a copy on the disk."""

from __future__ import annotations

from contextlib import closing, contextmanager
from io import FileIO
from typing import TYPE_CHECKING

import zstandard

from upgrade_manager.toolkit.host.host_tree import PARTIAL
from upgrade_manager.toolkit.images.tar_entries import EntryChecker
from upgrade_manager.toolkit.images.zstd_frames import FrameChecker
from upgrade_manager.toolkit.run.background_work import consume, discard
from upgrade_manager.toolkit.run.errors import BadArchive

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

#: Bytes that are read and unpacked at once: large enough that Python's cost for each piece does not count.
_READ = 512 * 1024
_PIECE = 1024 * 1024
#: The most that an archive may unpack to, as a multiple of its size; images reach 2 to 5.
_MAX_RATIO = 100
#: Bytes that any archive may unpack to.
_SMALL = 1024 * 1024 * 1024


def unpacked(path: Path) -> Generator[bytes]:
    """Yield the tar stream, whose end is reached only if all of the archive is valid. Raises BadArchive.

    The decompressor verifies the checksum of each frame.
    """
    name, size = path.name.removesuffix(PARTIAL), path.stat().st_size
    frames, entries = FrameChecker(name), EntryChecker(name)
    total, limit = 0, max(_SMALL, _MAX_RATIO * size)
    with _reader(path, frames) as reader:
        while piece := _next(reader, name):
            total += len(piece)
            if total > limit:
                raise BadArchive(f"{name} unpacks to more than {limit} bytes, {_MAX_RATIO} times its size")
            entries.feed(piece)
            yield piece
    frames.finish()
    entries.finish()


def _next(reader: zstandard.ZstdDecompressionReader, name: str) -> bytes:
    """Return the next piece, empty at the end. Raises BadArchive."""
    try:
        return reader.read(_PIECE)
    except zstandard.ZstdError as error:
        raise BadArchive(f"{name} is corrupt: {error}") from error


@contextmanager
def _reader(path: Path, frames: FrameChecker) -> Iterator[zstandard.ZstdDecompressionReader]:
    """Open the archive; only its window is buffered, at most libzstd's default limit of 128 MiB."""
    decompressor = zstandard.ZstdDecompressor()
    with (
        _CheckedFile(path, frames) as file,
        decompressor.stream_reader(file, read_size=_READ, read_across_frames=True) as reader,
    ):
        yield reader


class _CheckedFile(FileIO):
    """A file whose frames are checked as it is read."""

    def __init__(self, path: Path, frames: FrameChecker) -> None:
        super().__init__(path)
        self._frames = frames

    def read(self, size: int | None = -1, /) -> bytes:
        """Return the next bytes. Raises BadArchive."""
        piece = super().read(size)
        self._frames.feed(piece)
        return piece


async def verify(path: Path) -> None:
    """Read the whole archive. Raises BadArchive."""
    with closing(unpacked(path)) as pieces:
        await consume(pieces, discard)
