"""Checks the frames of a zstd file by their headers while the file is read.

image_archive.py checks a stream by this module before unpacking; tar_entries.py checks the unpacked stream.

The decompressor cannot report a last frame that is cut off, and does not name the place of data between frames.
Format: RFC 8878, section 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.toolkit.run.errors import BadArchive

if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import TypeAlias

    #: Yields the offset and the length of the next field of a header; receives the field's bytes.
    _Fields: TypeAlias = Generator[tuple[int, int], bytes, int]

_MAGIC = 0xFD2FB528
#: The magic number of a frame that decompressors skip; its last digit may be any.
_SKIPPABLE = 0x184D2A50
_RLE, _RESERVED = 1, 3
#: The number of header bytes by the value of their flag.
_DICTIONARY_BYTES = (0, 1, 2, 4)
_SIZE_BYTES = (0, 2, 4, 8)


class FrameChecker:
    """Reads the headers of one file."""

    def __init__(self, name: str) -> None:
        self._name = name
        #: Bytes that have passed.
        self._passed = 0
        #: The offset at which the current frame begins, or the next one.
        self._frame = 0
        self._fields = self._frames()
        #: Offset and length of the next field, and the bytes of the field that have passed.
        self._offset, self._length = next(self._fields)
        self._found = b""

    def feed(self, piece: bytes) -> None:
        """Check the headers in the next bytes. Raises BadArchive."""
        end = self._passed + len(piece)
        while (position := self._offset + len(self._found)) < end:
            begin = position - self._passed
            self._found += piece[begin : begin + self._length - len(self._found)]
            if len(self._found) == self._length:
                self._offset, self._length = self._fields.send(self._found)
                self._found = b""
        self._passed = end

    def finish(self) -> None:
        """Raise BadArchive unless the file consists of whole frames."""
        if not self._passed:
            raise BadArchive(f"{self._name} is empty")
        if self._passed != self._frame:
            raise BadArchive(f"{self._name} is cut off")

    def _frames(self) -> _Fields:
        while True:
            begin = self._frame
            magic = _number((yield begin, 4))
            if magic & ~0xF == _SKIPPABLE:
                self._frame = begin + 8 + _number((yield begin + 4, 4))
            elif magic == _MAGIC:
                self._frame = yield from self._content(begin + 4)
            else:
                where = f"has other data after byte {begin}" if begin else "is not a zstd file"
                raise BadArchive(f"{self._name} {where}")

    def _content(self, position: int) -> _Fields:
        """Return the end of the frame whose descriptor is at the position."""
        descriptor = _number((yield position, 1))
        single = bool(descriptor & 0x20)
        size = _SIZE_BYTES[descriptor >> 6] or int(single)
        position = yield from self._blocks(position + 1 + int(not single) + _DICTIONARY_BYTES[descriptor & 3] + size)
        return position + (4 if descriptor & 4 else 0)

    def _blocks(self, position: int) -> _Fields:
        """Return the end of the blocks that begin at the position."""
        last = False
        while not last:
            header = _number((yield position, 3))
            last, kind, size = bool(header & 1), header >> 1 & 3, header >> 3
            if kind == _RESERVED:
                raise BadArchive(f"{self._name} is corrupt at byte {position}")
            position += 3 + (1 if kind == _RLE else size)
        return position


def _number(field: bytes) -> int:
    return int.from_bytes(field, "little")
