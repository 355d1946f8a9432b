from __future__ import annotations

import os
from contextlib import AbstractAsyncContextManager
from hashlib import sha256
from pathlib import Path

import pytest

from tests.support.toolkit.prepare import iso
from tests.support.toolkit.toolkit import IsoFiles
from upgrade_manager.api.checksums import write_checksums
from upgrade_manager.kube.errors import NotFound, Terminal
from upgrade_manager.toolkit.iso import checksums as module
from upgrade_manager.toolkit.iso.checksums import Checksums
from upgrade_manager.toolkit.iso.iso_directory import IsoDirectory
from upgrade_manager.toolkit.iso.release_files import BUNDLE, RELEASE, ReleaseFiles
from upgrade_manager.toolkit.iso.repository_files import FileBody
from upgrade_manager.toolkit.run.errors import BadArchive, BadEnvironment, WrongChecksum

CONTENT, OTHER = b"content", b"changed"
DIGESTS = {"/a": sha256(CONTENT).hexdigest()}


@pytest.mark.parametrize("content", [b"", CONTENT, b"x" * 3_000_001])
async def test_digest_is_that_of_the_whole_file(
    tmp_path: Path, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_READ", 1_048_576)
    (tmp_path / "a").write_bytes(content)
    assert await module.sha256(tmp_path / "a") == sha256(content).hexdigest()


async def test_file_is_hashed_again_only_after_a_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[Path] = []
    whole = module.sha256

    async def counted(path: Path) -> str:
        hashed.append(path)
        return await whole(path)

    monkeypatch.setattr(module, "sha256", counted)
    checksums, path = Checksums(DIGESTS), tmp_path / "a.partial"
    path.write_bytes(CONTENT)
    await checksums.verify("/a", path)
    path = path.rename(tmp_path / "a")
    await checksums.verify("/a", path)
    assert len(hashed) == 1
    path.write_bytes(OTHER)
    os.utime(path, ns=(1, 1))
    with pytest.raises(WrongChecksum):
        await checksums.verify("/a", path)


def test_message_has_file_and_both_digests() -> None:
    with pytest.raises(WrongChecksum) as refused:
        Checksums(DIGESTS).verify_content("/a", OTHER)
    assert str(refused.value) == (
        f"/a has the SHA-256 {sha256(OTHER).hexdigest()}, but the one on the ISO has {DIGESTS['/a']}. It was changed "
        "on its way from the upgrade repository, which is plain HTTP, or the repository serves another ISO"
    )


@pytest.mark.parametrize(
    ("files", "source", "expected"),
    [
        pytest.param({}, "/b.tar.zst", "", id="nothing was computed"),
        pytest.param(DIGESTS, "/a", DIGESTS["/a"], id="known"),
        pytest.param(DIGESTS, "/b.txt", "", id="a list, which may be left out"),
    ],
)
def test_expected_digest(files: dict[str, str], source: str, expected: str) -> None:
    assert Checksums(files).expected(source) == expected


def test_archive_that_the_iso_lacks_is_refused() -> None:
    with pytest.raises(BadArchive, match=r"^/b\.tar\.zst is not among the files of the ISO that were checked"):
        Checksums(DIGESTS).expected("/b.tar.zst")


def test_variable_is_parsed_and_a_wrong_one_refused() -> None:
    assert Checksums.parse("").expected("/a") == ""
    assert Checksums.parse(write_checksums(DIGESTS)).expected("/a") == DIGESTS["/a"]
    with pytest.raises(BadEnvironment, match="the checksums of the ISO's files are invalid: "):
        Checksums.parse("{")


@pytest.mark.rule("nodes: the release's description and lists are refused if they are not the ISO's")
@pytest.mark.parametrize("path", [RELEASE, BUNDLE, "/bundle/rancher.txt"])
@pytest.mark.parametrize("times", [1, 2])
async def test_changed_description_is_read_once_more(path: str, times: int) -> None:
    good = iso()
    files = _ChangedFiles(good, path, times=times)
    checksums = Checksums({name: sha256(content).hexdigest() for name, content in good.items()})
    release = ReleaseFiles(files, checksums=checksums)

    async def read() -> None:
        await release.versions()
        for archive in (await release.bundle()).common:
            await release.references(archive)

    if times == 1:
        await read()
    else:
        with pytest.raises(WrongChecksum, match=f"^{path} has the SHA-256 "):
            await read()
    assert [one for one, _ in files.requests].count(path) == 2


async def test_description_that_disappears_after_a_change_is_named() -> None:
    good = iso()
    files = IsoFiles({**good, RELEASE: good[RELEASE] + b"\n#"})
    files.errors = [None, NotFound("it was unmounted")]
    checksums = Checksums({name: sha256(content).hexdigest() for name, content in good.items()})
    with pytest.raises(Terminal, match="; the ISO is corrupt or not a Harvester release"):
        await ReleaseFiles(files, checksums=checksums).versions()


class _ChangedFiles(IsoFiles):
    """Files of which one is changed on its way, in the first responses."""

    def __init__(self, files: dict[str, bytes], path: str, *, times: int) -> None:
        super().__init__(files)
        self._good, self._path, self._left = files[path], path, times

    def open(self, path: str, *, offset: int = 0, etag: str = "") -> AbstractAsyncContextManager[FileBody]:  # type: ignore[override]
        if path == self._path:
            self.files = {**self.files, path: self._good + (b"\n#" if self._left > 0 else b"")}
            self._left -= 1
        return super().open(path, offset=offset, etag=etag)


async def test_mounted_iso_is_read_like_a_served_one(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(CONTENT)
    async with IsoDirectory(tmp_path).open("/a", offset=3) as body:
        assert (body.offset, body.size, body.etag) == (3, len(CONTENT), "")
        assert b"".join([piece async for piece in body.pieces]) == CONTENT[3:]


async def test_links_of_an_iso_do_not_lead_out_of_it(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(OTHER)
    (tmp_path / "iso").mkdir()
    (tmp_path / "iso/secret").write_bytes(CONTENT)
    (tmp_path / "iso/a").symlink_to("../../secret")
    assert IsoDirectory(tmp_path / "iso").path("/a").read_bytes() == CONTENT
