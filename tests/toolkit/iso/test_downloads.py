from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import BinaryIO

import pytest
from structlog.testing import capture_logs

from tests.support.random_runs.randomness import Lowest
from tests.support.toolkit.iso_server import PATH, IsoServer, serve
from upgrade_manager.kube.clock import loop_time
from upgrade_manager.kube.errors import NotFound, Transient
from upgrade_manager.toolkit.host import disk_space
from upgrade_manager.toolkit.host.disk_space import RESERVE
from upgrade_manager.toolkit.host.host_tree import HostTree
from upgrade_manager.toolkit.iso import downloads
from upgrade_manager.toolkit.iso.checksums import Checksums
from upgrade_manager.toolkit.iso.downloads import STALL_TIMEOUT, Downloads
from upgrade_manager.toolkit.iso.repository_files import FileBody, HttpRepositoryFiles, RepositoryFiles
from upgrade_manager.toolkit.run.errors import BadArchive, OutOfSpace, StepFailed, StepTimedOut, WrongChecksum

CONTENT = Random(1).randbytes(100_000)
OTHER = Random(2).randbytes(100_000)
TARGET = "/data/file"
UNCHECKED = Checksums({})
CHECKED = Checksums({PATH: sha256(CONTENT).hexdigest()})


def _left(folder: Path) -> dict[str, int]:
    """Return the sizes of the files that a download left."""
    return {path.name: path.stat().st_size for path in (folder / "data").iterdir() if path.name != "file.partial.etag"}


class _AtOnce(Random):
    """Retries at once: requests to a real server are not awaited in real time."""

    def uniform(self, a: float, b: float) -> float:
        _ = a, b
        return 0.0


async def _fetch(
    files: RepositoryFiles, folder: Path, *, random: Random | None = None, checksums: Checksums = UNCHECKED
) -> bytes:
    random = random or (_AtOnce() if isinstance(files, HttpRepositoryFiles) else Lowest())
    await Downloads(files, HostTree(folder), checksums=checksums, random=random).fetch(PATH, TARGET)
    assert _left(folder).keys() == {"file"}
    assert not (folder / "data/file.partial.etag").exists()
    return (folder / "data/file").read_bytes()


async def _killed(server: IsoServer, folder: Path, *, after: int) -> None:
    """Leave what a run leaves that is killed after so many bytes."""
    server.cuts.append(after)
    server.statuses = []
    async with serve(server) as files, asyncio.timeout(30):
        downloads = Downloads(files, HostTree(folder), checksums=UNCHECKED, random=_AtOnce())
        task = asyncio.create_task(downloads.fetch(PATH, TARGET))
        while not server.requested or _left(folder).get("file.partial") != after:
            await asyncio.sleep(0)
            if not (folder / "data").exists():
                (folder / "data").mkdir()
        task.cancel()
        await asyncio.wait({task})
    server.requested.clear()


@pytest.mark.real_loop
@pytest.mark.parametrize(
    ("faults", "requested"),
    [
        pytest.param({}, [""], id="no-fault"),
        pytest.param({"cuts": [1_000]}, ["", "bytes=1000-"], id="cut-at-1-percent"),
        pytest.param({"cuts": [50_000]}, ["", "bytes=50000-"], id="cut-in-the-middle"),
        pytest.param({"cuts": [99_000]}, ["", "bytes=99000-"], id="cut-at-99-percent"),
        pytest.param({"cuts": [1_000, 2_000]}, ["", "bytes=1000-", "bytes=3000-"], id="cut-twice"),
        pytest.param({"cuts": [50_000], "ranges": False}, ["", "bytes=50000-"], id="server-without-ranges"),
        pytest.param({"cuts": [50_000], "etag": ""}, ["", ""], id="server-without-etags"),
        pytest.param({"cuts": [50_000], "length": False}, ["", "bytes=50000-"], id="chunked"),
        pytest.param({"statuses": [503, 500, 429]}, ["", "", "", ""], id="server-errors"),
    ],
)
async def test_file_is_complete_after_faults(tmp_path: Path, faults: dict[str, object], requested: list[str]) -> None:
    server = IsoServer(content=CONTENT, **faults)  # type: ignore[arg-type]  # rows of the table
    async with serve(server) as files:
        assert await _fetch(files, tmp_path) == CONTENT
    assert server.requested == requested


@pytest.mark.real_loop
@pytest.mark.parametrize(
    ("changes", "requested"),
    [
        pytest.param({}, ["bytes=50000-"], id="same-file-continues"),
        pytest.param({"content": OTHER, "etag": '"2"'}, ["bytes=50000-"], id="other-iso-starts-over"),
        pytest.param(
            {"content": OTHER, "etag": '"2"', "if_range": False}, ["bytes=50000-", ""], id="server-ignores-if-range"
        ),
        pytest.param({"content": OTHER[:40_000], "if_range": False}, ["bytes=50000-", ""], id="416-starts-over"),
        pytest.param({"content": OTHER + b"x", "if_range": False}, ["bytes=50000-", ""], id="other-size-starts-over"),
    ],
)
async def test_later_run_continues_only_the_same_file(
    tmp_path: Path, changes: dict[str, object], requested: list[str]
) -> None:
    server = IsoServer(content=CONTENT)
    await _killed(server, tmp_path, after=50_000)
    for name, value in changes.items():
        setattr(server, name, value)
    async with serve(server) as files:
        assert await _fetch(files, tmp_path) == server.content
    assert server.requested == requested


@pytest.mark.real_loop
async def test_partial_file_without_its_etag_is_not_continued(tmp_path: Path) -> None:
    server = IsoServer(content=CONTENT)
    await _killed(server, tmp_path, after=50_000)
    (tmp_path / "data/file.partial.etag").write_text('{"etag": ')
    async with serve(server) as files:
        assert await _fetch(files, tmp_path) == CONTENT
    assert server.requested == [""]


@pytest.mark.real_loop
async def test_complete_partial_file_costs_one_byte(tmp_path: Path) -> None:
    """A run that is killed after the last byte, before the rename."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data/file.partial").write_bytes(CONTENT)
    (tmp_path / "data/file.partial.etag").write_text('{"etag": "\\"1\\"", "size": 100000}')
    server = IsoServer(content=CONTENT)
    async with serve(server) as files:
        assert await _fetch(files, tmp_path) == CONTENT
    assert server.requested == ["bytes=99999-"]


@pytest.mark.real_loop
@pytest.mark.parametrize(
    ("present", "requests"), [pytest.param(CONTENT, 1, id="same-size"), pytest.param(b"old", 2, id="other-size")]
)
async def test_existing_file_counts_if_its_size_is_right(tmp_path: Path, present: bytes, requests: int) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/file").write_bytes(present)
    server = IsoServer(content=CONTENT)
    async with serve(server) as files:
        assert await _fetch(files, tmp_path) == CONTENT
    assert len(server.requested) == requests


@pytest.mark.real_loop
async def test_missing_file_ends_the_download(tmp_path: Path) -> None:
    async with serve(IsoServer(statuses=[404])) as files:
        with pytest.raises(NotFound, match="does not exist"):
            await _fetch(files, tmp_path)


@dataclass(slots=True)
class _Files:
    """RepositoryFiles with CONTENT, on virtual time."""

    #: The time at which the server begins to answer.
    up_at: float = 0.0
    #: Seconds before each piece.
    delay: float = 0.0
    size: int = len(CONTENT)
    #: The time at which requests were made.
    times: list[float] = field(default_factory=list)

    @asynccontextmanager
    async def open(self, _: str, *, offset: int = 0, etag: str = "") -> AsyncIterator[FileBody]:
        self.times.append(loop_time())
        if loop_time() < self.up_at:
            raise Transient("http://repo/file: connection refused")
        assert not offset or etag
        yield FileBody(offset=offset, size=self.size, etag='"1"', pieces=self._pieces(offset))

    async def _pieces(self, offset: int) -> AsyncIterator[bytes]:
        for start in range(offset, len(CONTENT), 25_000):
            await asyncio.sleep(self.delay)
            yield CONTENT[start : start + 25_000]


async def test_repository_that_is_down_for_ten_minutes_is_awaited(tmp_path: Path) -> None:
    files = _Files(up_at=600)
    assert await _fetch(files, tmp_path) == CONTENT
    assert 600 <= loop_time() < 640
    # With backoff: at most one request in 30 s.
    assert len(files.times) < 30


async def test_nodes_that_fail_together_retry_apart(tmp_path: Path) -> None:
    files = _Files(up_at=600)
    nodes = [tmp_path / str(number) for number in range(5)]
    async with asyncio.TaskGroup() as group:
        for number, node in enumerate(nodes):
            group.create_task(_fetch(files, node, random=Random(number)))
    first, *later = sorted(set(files.times))
    assert files.times.count(first) == len(nodes)
    assert len(later) == len(files.times) - len(nodes)
    # The nodes do not ask within one second when the repository is back.
    assert max(later) - min(time for time in later if time >= files.up_at) > 1


async def test_download_without_progress_fails_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(StepTimedOut, match=r"^no progress for 30 min: http://repo/file: connection refused$"):
        await _fetch(_Files(up_at=2 * STALL_TIMEOUT), tmp_path)


async def test_server_that_always_sends_too_little_fails(tmp_path: Path) -> None:
    with pytest.raises(StepTimedOut, match="100000 of 100001 bytes arrived"):
        await _fetch(_Files(size=len(CONTENT) + 1), tmp_path)


async def test_server_that_sends_too_much_fails(tmp_path: Path) -> None:
    with pytest.raises(BadArchive, match="100000 bytes arrived instead of 99999"):
        await _fetch(_Files(size=len(CONTENT) - 1), tmp_path)
    assert _left(tmp_path) == {}


@pytest.mark.parametrize(
    ("files", "count"), [pytest.param(_Files(delay=25), 10, id="slow"), pytest.param(_Files(up_at=121), 14, id="down")]
)
async def test_progress_is_logged_every_ten_seconds(tmp_path: Path, files: _Files, count: int) -> None:
    with capture_logs() as logs:
        await _fetch(files, tmp_path)
    reports = [entry for entry in logs if entry["event"] == "downloading"]
    assert len(reports) == count
    assert reports[0]["file"] == PATH


async def test_full_disk_is_found_before_the_download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_space, "free_bytes", lambda _: RESERVE)
    with pytest.raises(OutOfSpace) as raised:
        await _fetch(_Files(), tmp_path)
    assert (
        str(raised.value)
        == "/file needs 1025 MiB in /data on the host, which has 1024 MiB free. Free space on the node"
    )
    assert _left(tmp_path) == {}


@pytest.mark.parametrize(
    ("number", "kind", "message"),
    [
        pytest.param(
            errno.ENOSPC,
            OutOfSpace,
            "/file cannot be written to /data on the host: No space left on device. Free space on the node",
            id="full",
        ),
        pytest.param(
            errno.EROFS,
            StepFailed,
            "/file cannot be written to /data on the host: Read-only file system",
            id="read-only",
        ),
    ],
)
async def test_disk_that_fails_in_the_middle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, kind: type[StepFailed], message: str
) -> None:
    def fail_later(file: BinaryIO, pieces: Iterable[bytes]) -> None:
        for piece in pieces:
            if file.seek(0, os.SEEK_CUR) >= 50_000:
                raise OSError(number, os.strerror(number))
            file.write(piece)

    with monkeypatch.context() as patch:
        patch.setattr(downloads, "write_all", fail_later)
        with pytest.raises(StepFailed) as raised:
            await _fetch(_Files(), tmp_path)
    assert type(raised.value) is kind
    assert str(raised.value) == message
    # A full disk is freed at once; after another error the next run continues.
    assert _left(tmp_path) == ({} if kind is OutOfSpace else {"file.partial": 50_000})
    assert await _fetch(_Files(), tmp_path) == CONTENT


async def test_small_pieces_are_written_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writes = list[int]()

    def record(file: BinaryIO, pieces: Iterable[bytes]) -> None:
        content = b"".join(pieces)
        writes.append(len(content))
        file.write(content)

    monkeypatch.setattr(downloads, "write_all", record)
    monkeypatch.setattr(downloads, "_WRITE", 60_000)
    assert await _fetch(_Files(), tmp_path) == CONTENT
    assert writes == [75_000, 25_000]


async def test_disk_that_cannot_be_flushed_ends_the_download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(downloads, "_WRITE", 1)
    monkeypatch.setattr(downloads, "_SYNC_EVERY", len(CONTENT))
    monkeypatch.setattr(os, "fdatasync", fail)
    with pytest.raises(StepFailed, match=r"^/file cannot be written to /data on the host: Input/output error$"):
        await _fetch(_Files(), tmp_path)


@pytest.mark.rule("nodes: a downloaded file of another checksum than the ISO's is discarded, also on a later run")
@pytest.mark.real_loop
async def test_changed_file_is_fetched_once_more_and_refused(tmp_path: Path) -> None:
    server = IsoServer(content=OTHER)
    async with serve(server) as files:
        with pytest.raises(WrongChecksum) as refused:
            await _fetch(files, tmp_path, checksums=CHECKED)
    assert server.requested == ["", ""]
    expected, found = (sha256(content).hexdigest() for content in (CONTENT, OTHER))
    assert str(refused.value).startswith(f"{PATH} has the SHA-256 {found}, but the one on the ISO has {expected}. ")
    assert _left(tmp_path) == {}


@pytest.mark.real_loop
async def test_file_that_is_changed_once_is_fetched_again(tmp_path: Path) -> None:
    server = IsoServer(content=CONTENT)
    server.changed.append(OTHER)
    async with serve(server) as files:
        assert await _fetch(files, tmp_path, checksums=CHECKED) == CONTENT
    assert server.requested == ["", ""]


@pytest.mark.rule("nodes: a downloaded file of another checksum than the ISO's is discarded, also on a later run")
@pytest.mark.real_loop
async def test_changed_beginning_of_an_earlier_run_is_not_kept(tmp_path: Path) -> None:
    server = IsoServer(content=OTHER)
    await _killed(server, tmp_path, after=50_000)
    server.content = CONTENT
    async with serve(server) as files:
        assert await _fetch(files, tmp_path, checksums=CHECKED) == CONTENT
    assert server.requested == ["bytes=50000-", ""]


@pytest.mark.real_loop
@pytest.mark.parametrize(
    ("checksums", "requests"),
    [pytest.param(CHECKED, 2, id="with checksums"), pytest.param(UNCHECKED, 1, id="without")],
)
async def test_existing_file_of_the_right_size_is_checked(tmp_path: Path, checksums: Checksums, requests: int) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/file").write_bytes(OTHER)
    server = IsoServer(content=CONTENT)
    async with serve(server) as files:
        found = await _fetch(files, tmp_path, checksums=checksums)
    assert (found, len(server.requested)) == (CONTENT if checksums is CHECKED else OTHER, requests)


@pytest.mark.real_loop
async def test_file_that_the_iso_lacks_is_not_fetched(tmp_path: Path) -> None:
    server = IsoServer(content=CONTENT)
    checksums = Checksums({"/other": "0" * 64})
    async with serve(server) as files:
        with pytest.raises(BadArchive, match="/file is not among the files of the ISO that were checked"):
            await _fetch(files, tmp_path, checksums=checksums)
    assert server.requested == []
