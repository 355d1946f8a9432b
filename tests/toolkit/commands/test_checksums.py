from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest
import yaml

from tests.support.toolkit.prepare import iso
from tests.support.toolkit.toolkit import ToolkitWorld, toolkit_world
from tests.support.toolkit.toolkit_transcript import golden, transcript
from upgrade_manager.api.checksums import MAX_BYTES, read_checksums
from upgrade_manager.toolkit.run.errors import StepFailed

COMMAND = "node checksums"
ROOTFS = "/rootfs.squashfs"


def mount(world: ToolkitWorld, files: dict[str, bytes]) -> None:
    """Fill the folder in which the Pod mounts the ISO."""
    for name, content in files.items():
        path = world.iso_dir / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def with_archives(*names: str) -> dict[str, bytes]:
    """Return the files of an ISO whose group `common` has these archives."""
    files = iso() | {ROOTFS: b"system"}
    bundle = yaml.safe_load(files["/bundle/metadata.yaml"])
    for name in names:
        bundle["images"]["common"].append({"list": f"/{name}.txt", "archive": f"/{name}.tar.zst"})
        files |= {f"/bundle/{name}.txt": b"a:1\n", f"/bundle/{name}.tar.zst": b"images"}
    return files | {"/bundle/metadata.yaml": yaml.safe_dump(bundle).encode()}


@pytest.mark.rule(
    "workloads: the checksums Job reports the SHA-256 of the root file system, the archives and their lists"
)
async def test_golden_run_reports_all_files_that_jobs_read(tmp_path: Path) -> None:
    async with toolkit_world(tmp_path) as world:
        files = with_archives()
        mount(world, files | {"/bundle/other": b"which no Job reads"})
        listing = await transcript(world, COMMAND)
        assert listing == golden("checksums", listing)
        (report,) = world.reports
        assert read_checksums(report) == {path: sha256(content).hexdigest() for path, content in files.items()}
        # Nothing passes through the repository, and nothing on the host.
        assert (world.iso.requests, world.programs.state.calls) == ([], [])


@pytest.mark.parametrize(
    ("archives", "lists"), [pytest.param(10, True, id="all fit"), pytest.param(16, False, id="lists are left out")]
)
async def test_lists_are_left_out_where_all_are_too_long(tmp_path: Path, archives: int, *, lists: bool) -> None:
    async with toolkit_world(tmp_path) as world:
        files = with_archives(*(f"images-{number}-v1.33.5-rke2r1" for number in range(archives)))
        mount(world, files)
        await world.run(COMMAND)
        (report,) = world.reports
        assert len(report.encode()) <= MAX_BYTES
        left_out = files.keys() - read_checksums(report).keys()
        assert left_out == (set() if lists else {path for path in files if path.endswith(".txt")})


async def test_too_many_archives_fail_in_one_line(tmp_path: Path) -> None:
    async with toolkit_world(tmp_path) as world:
        mount(world, with_archives(*(f"images-{number}-v1.33.5-rke2r1" for number in range(60))))
        with pytest.raises(StepFailed, match=r"^compute-checksums: the checksums of 66 files exceed the 4096 bytes"):
            await world.run(COMMAND)
        assert world.reports == []


@pytest.mark.parametrize("path", ["/harvester-release.yaml", ROOTFS, "/bundle/rke2.tar.zst", "/bundle/agent.txt"])
async def test_incomplete_iso_fails_in_one_line(tmp_path: Path, path: str) -> None:
    async with toolkit_world(tmp_path) as world:
        mount(world, with_archives())
        (world.iso_dir / path.lstrip("/")).unlink()
        with pytest.raises(StepFailed) as failed:
            await world.run(COMMAND)
        assert str(failed.value).startswith(f"compute-checksums: {path} does not exist on the ISO; ")
        assert world.reports == []
