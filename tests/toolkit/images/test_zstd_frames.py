from __future__ import annotations

import struct
from random import Random

import pytest
import zstandard

from tests.support.toolkit.image_archives import compressed
from upgrade_manager.toolkit.images.zstd_frames import FrameChecker
from upgrade_manager.toolkit.run.errors import BadArchive

#: Two blocks: a frame has no more than 128 KiB in one.
CONTENT = Random(1).randbytes(140_000)
FRAME = compressed(CONTENT)
SKIPPABLE = struct.pack("<II", 0x184D2A50, 3) + b"abc"
STREAMED = zstandard.ZstdCompressor(write_content_size=False, write_checksum=False).compress(CONTENT)
RLE = compressed(bytes(300_000))
RESERVED = struct.pack("<IBB", 0xFD2FB528, 0, 0) + (3 << 1 | 1).to_bytes(3, "little")


def _check(content: bytes, piece: int) -> None:
    checker = FrameChecker("a.tar.zst")
    for start in range(0, len(content), piece):
        checker.feed(content[start : start + piece])
    checker.finish()


@pytest.mark.parametrize("piece", [1, 4096, 1_000_000])
@pytest.mark.parametrize(
    "content",
    [
        pytest.param(FRAME, id="one-frame"),
        pytest.param(STREAMED, id="no-size-and-no-checksum"),
        pytest.param(RLE, id="rle-blocks"),
        pytest.param(compressed(b""), id="empty-frame"),
        pytest.param(SKIPPABLE + FRAME + SKIPPABLE + STREAMED + RLE, id="many-frames"),
    ],
)
def test_whole_frames_pass_in_pieces_of_any_size(content: bytes, piece: int) -> None:
    _check(content, piece)


@pytest.mark.parametrize("piece", [1, 4096, 1_000_000])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(b"", "is empty", id="empty"),
        pytest.param(b"no archive", "is not a zstd file", id="other-format"),
        pytest.param(FRAME + b"rubbish", f"has other data after byte {len(FRAME)}", id="rubbish"),
        pytest.param(RESERVED, "is corrupt at byte 6", id="reserved-block"),
        pytest.param(FRAME[:-1], "is cut off", id="cut-in-the-checksum"),
        pytest.param(FRAME + FRAME[:3], "is cut off", id="cut-in-the-second-magic-number"),
        pytest.param(FRAME + SKIPPABLE[:-1], "is cut off", id="cut-in-a-skippable-frame"),
    ],
)
def test_other_files_are_refused(content: bytes, message: str, piece: int) -> None:
    with pytest.raises(BadArchive) as raised:
        _check(content, piece)
    assert str(raised.value) == f"a.tar.zst {message}"


def test_file_that_is_cut_off_anywhere_is_refused() -> None:
    content = SKIPPABLE + RLE + compressed(b"some content") + SKIPPABLE
    ends = {len(SKIPPABLE), len(SKIPPABLE + RLE), len(content) - len(SKIPPABLE)}
    for end in set(range(1, len(content))) - ends:
        with pytest.raises(BadArchive, match="is cut off"):
            _check(content[:end], 16)
