from __future__ import annotations

import struct
import tarfile
from pathlib import Path

import pytest
import zstandard

from tests.support.toolkit.image_archives import compressed, entry, images_tar, tar
from upgrade_manager.toolkit.images import image_archive
from upgrade_manager.toolkit.images.image_archive import unpacked, verify
from upgrade_manager.toolkit.run.errors import BadArchive

TAR = images_tar("docker.io/rancher/rancher:v2", layers=[(entry("layer.tar"), bytes(range(256)) * 2000)])
HALF = len(TAR) // 2
SKIPPABLE = struct.pack("<II", 0x184D2A53, 5) + b"hello"
ARCHIVE = compressed(TAR)


def _streamed(content: bytes) -> bytes:
    """Return a frame without the content's size and without a checksum."""
    compressor = zstandard.ZstdCompressor(write_content_size=False, write_checksum=False).compressobj()
    return b"".join(
        [
            compressor.compress(content[:HALF]),
            compressor.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK),
            compressor.compress(content[HALF:]),
            compressor.flush(),
        ]
    )


def _with_flipped_bit(archive: bytes, position: int) -> bytes:
    changed = bytearray(archive)
    changed[position] ^= 1
    return bytes(changed)


def _unpack(folder: Path, archive: bytes) -> bytes:
    path = folder / "a.tar.zst"
    path.write_bytes(archive)
    return b"".join(unpacked(path))


@pytest.mark.parametrize(
    "archive",
    [
        pytest.param(ARCHIVE, id="one-frame"),
        pytest.param(compressed(TAR[:HALF]) + compressed(TAR[HALF:]), id="two-frames"),
        pytest.param(SKIPPABLE + ARCHIVE, id="skippable-frame-first"),
        pytest.param(compressed(TAR[:HALF]) + SKIPPABLE + compressed(TAR[HALF:]), id="skippable-frame-between"),
        pytest.param(ARCHIVE + SKIPPABLE, id="skippable-frame-last"),
        pytest.param(compressed(b"") + ARCHIVE + compressed(b""), id="empty-frames"),
        pytest.param(_streamed(TAR), id="unknown-size"),
        pytest.param(zstandard.ZstdCompressor(level=19, threads=2).compress(TAR), id="other-level"),
        pytest.param(compressed(tar((entry("zero"), bytes(5_000_000)))), id="rle-blocks"),
    ],
)
def test_archive_is_unpacked(tmp_path: Path, archive: bytes) -> None:
    found = _unpack(tmp_path, archive)
    assert found in (TAR, tar((entry("zero"), bytes(5_000_000))))


@pytest.mark.parametrize(
    ("archive", "message"),
    [
        pytest.param(b"", "a.tar.zst is empty", id="empty"),
        pytest.param(TAR, "a.tar.zst is not a zstd file", id="not-compressed"),
        pytest.param(ARCHIVE[:3], "a.tar.zst is cut off", id="cut-in-the-magic-number"),
        pytest.param(ARCHIVE[: len(ARCHIVE) // 2], "a.tar.zst is cut off", id="cut-in-the-middle"),
        pytest.param(ARCHIVE[:-1], "a.tar.zst is cut off", id="cut-in-the-checksum"),
        pytest.param(SKIPPABLE[:-1], "a.tar.zst is cut off", id="cut-skippable-frame"),
        pytest.param(compressed(TAR[:HALF]), "a.tar.zst ends in the middle of the archive", id="second-frame-missing"),
        pytest.param(ARCHIVE + b"rubbish", f"a.tar.zst has other data after byte {len(ARCHIVE)}", id="rubbish"),
        pytest.param(_with_flipped_bit(ARCHIVE, len(ARCHIVE) - 1), "a.tar.zst is corrupt: ", id="wrong-checksum"),
        pytest.param(_with_flipped_bit(ARCHIVE, 40), "a.tar.zst is corrupt", id="wrong-content"),
        pytest.param(compressed(b"no tar" * 200), "a.tar.zst is not a tar archive: ", id="no-tar"),
        pytest.param(compressed(tar((entry("/x"), b""))), "a.tar.zst: entry '/x' has a path", id="absolute-path"),
    ],
)
def test_bad_archive_is_refused(tmp_path: Path, archive: bytes, message: str) -> None:
    with pytest.raises(BadArchive) as raised:
        _unpack(tmp_path, archive)
    assert str(raised.value).startswith(message)


def test_bomb_is_refused_before_it_unpacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_archive, "_SMALL", 4 * 1024 * 1024)
    path = tmp_path / "a.tar.zst"
    header = entry("zero", size=10**12).tobuf(tarfile.GNU_FORMAT)
    path.write_bytes(compressed(header + bytes(50_000_000)))
    passed = list[int]()

    with pytest.raises(BadArchive, match=r"a.tar.zst unpacks to more than 4194304 bytes, 100 times its size"):
        passed.extend(map(len, unpacked(path)))
    assert sum(passed) <= 4 * 1024 * 1024


def test_window_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    """A frame that asks for gigabytes of memory."""
    window_of_2_gib = 21 << 3
    frame = struct.pack("<IBB", 0xFD2FB528, 0, window_of_2_gib) + b"\x01\x00\x00"
    with pytest.raises(BadArchive, match=r"a.tar.zst is corrupt: .*memory"):
        _unpack(tmp_path, frame)


async def test_verify_reads_all(tmp_path: Path) -> None:
    path = tmp_path / "a.tar.zst"
    path.write_bytes(ARCHIVE)
    await verify(path)
    path.write_bytes(_with_flipped_bit(ARCHIVE, len(ARCHIVE) - 1))
    with pytest.raises(BadArchive, match="corrupt"):
        await verify(path)
