"""Checks a zstd file's frames by their headers, without unpacking it.

The decompressor cannot report a last frame that is cut off, and would find data after the last frame only at the end.
Format: RFC 8878, section 3.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from upgrade_manager.toolkit.errors import BadArchive
from upgrade_manager.toolkit.host_tree import PARTIAL

if TYPE_CHECKING:
    from pathlib import Path

_MAGIC = 0xFD2FB528
#: The last digit is free in the magic number of a frame that decompressors skip.
_SKIPPABLE = 0x184D2A50
_RLE, _RESERVED = 1, 3
#: Header bytes by their flag.
_DICTIONARY_BYTES = (0, 1, 2, 4)
_SIZE_BYTES = (0, 2, 4, 8)


def check_frames(path: Path) -> int:
    """Return the file's size. Raises BadArchive unless it consists of whole zstd frames."""
    with path.open("rb") as file:
        name = path.name.removesuffix(PARTIAL)
        frames = _Frames(file.fileno(), name)
        end = os.fstat(file.fileno()).st_size
        if not end:
            raise BadArchive(f"{name} is empty")
        position = 0
        while position < end:
            position = frames.next(position)
            if position > end:
                raise BadArchive(f"{name} is cut off")
    return end


class _Frames:
    """Finds the ends of frames."""

    def __init__(self, descriptor: int, name: str) -> None:
        self._descriptor = descriptor
        self._name = name

    def next(self, position: int) -> int:
        """Return where the frame at the position ends; it may be beyond the file's end."""
        magic = self._number(position, 4)
        if magic & ~0xF == _SKIPPABLE:
            return position + 8 + self._number(position + 4, 4)
        if magic != _MAGIC:
            where = "is not a zstd file" if position == 0 else f"has other data after byte {position}"
            raise BadArchive(f"{self._name} {where}")
        descriptor = self._number(position + 4, 1)
        single = bool(descriptor & 0x20)
        size = _SIZE_BYTES[descriptor >> 6] or int(single)
        position = self._blocks(position + 5 + int(not single) + _DICTIONARY_BYTES[descriptor & 3] + size)
        return position + (4 if descriptor & 4 else 0)

    def _blocks(self, position: int) -> int:
        """Return where the blocks end that begin at the position."""
        last = False
        while not last:
            header = self._number(position, 3)
            last, kind, size = bool(header & 1), header >> 1 & 3, header >> 3
            if kind == _RESERVED:
                raise BadArchive(f"{self._name} is corrupt at byte {position}")
            position += 3 + (1 if kind == _RLE else size)
        return position

    def _number(self, position: int, length: int) -> int:
        """Read a number. Raises BadArchive at the file's end."""
        found = os.pread(self._descriptor, length, position)
        if len(found) < length:
            raise BadArchive(f"{self._name} is cut off")
        return int.from_bytes(found, "little")
