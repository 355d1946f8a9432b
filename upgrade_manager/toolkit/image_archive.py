"""Unpacks a zstd archive of images as a stream, without a copy on the disk."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, contextmanager
from typing import TYPE_CHECKING

import zstandard

from upgrade_manager.toolkit.errors import BadArchive
from upgrade_manager.toolkit.host_tree import PARTIAL
from upgrade_manager.toolkit.tar_entries import EntryChecker
from upgrade_manager.toolkit.zstd_frames import check_frames

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator
    from pathlib import Path

#: Bytes that are unpacked at once.
_PIECE = 2 * 1024 * 1024
#: The most that an archive may unpack to, as a multiple of its size; images reach 2 to 5.
_MAX_RATIO = 100
#: Bytes that any archive may unpack to.
_SMALL = 1024 * 1024 * 1024


async def unpacked(path: Path) -> AsyncGenerator[bytes]:
    """Yield the tar stream, whose end is reached only if all of the archive is valid. Raises BadArchive.

    The decompressor verifies the checksum of each frame.
    """
    name, size = path.name.removesuffix(PARTIAL), await asyncio.to_thread(check_frames, path)
    checker, total, limit = EntryChecker(name), 0, max(_SMALL, _MAX_RATIO * size)
    with _reader(path) as reader:
        async with aclosing(_ahead(reader, name)) as pieces:
            async for piece in pieces:
                total += len(piece)
                if total > limit:
                    raise BadArchive(f"{name} unpacks to more than {limit} bytes, {_MAX_RATIO} times its size")
                checker.feed(piece)
                yield piece
    checker.finish()


async def _ahead(reader: zstandard.ZstdDecompressionReader, name: str) -> AsyncGenerator[bytes]:
    """Unpack the next piece in a thread, while the caller works on one."""
    loop = asyncio.get_running_loop()
    pending = loop.run_in_executor(None, reader.read, _PIECE)
    try:
        while piece := await asyncio.shield(pending):
            pending = loop.run_in_executor(None, reader.read, _PIECE)
            yield piece
    except zstandard.ZstdError as error:
        raise BadArchive(f"{name} is corrupt: {error}") from error
    finally:
        # The reader must not be closed below the thread; what it raises now is of no interest.
        await asyncio.gather(pending, return_exceptions=True)


@contextmanager
def _reader(path: Path) -> Iterator[zstandard.ZstdDecompressionReader]:
    """Open the archive; its window, at most libzstd's default limit of 128 MiB, is all that is buffered."""
    with (
        path.open("rb", buffering=0) as file,
        zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True) as reader,
    ):
        yield reader


async def verify(path: Path) -> None:
    """Read the whole archive. Raises BadArchive."""
    async for _ in unpacked(path):
        continue
