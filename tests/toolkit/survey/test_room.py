from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.toolkit.os_upgrade import NEW_OS, boot_fallback, os_world
from tests.support.toolkit.survey import findings
from upgrade_manager.kube.errors import Transient
from upgrade_manager.toolkit.host.disk_space import RESERVE
from upgrade_manager.toolkit.host.host_paths import PASSIVE_IMAGE
from upgrade_manager.toolkit.os.os_rootfs import rootfs_path
from upgrade_manager.toolkit.survey import room


@pytest.fixture(autouse=True)
def _space(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give /usr/local some space, whatever this machine has."""
    monkeypatch.setattr(room, "free_bytes", lambda _: 50 * RESERVE)


async def test_release_that_is_larger_than_the_running_system_counts(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        world.iso.files["/rootfs.squashfs"] = b"x" * (3 * 1024 * 1024)
        world.programs.state.free_mib, world.programs.state.running_mib = 0, 0
        world.tree.remove(PASSIVE_IMAGE)
        assert "needs at least 262 MiB" in (await findings(world))["state-partition"]


@pytest.mark.parametrize(("kept", "missing"), [(0, 1027), (1, 1026), (3, 1024)])
async def test_room_for_the_download_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: int, missing: int
) -> None:
    async with os_world(tmp_path) as world:
        mib = 1024 * 1024
        world.iso.files["/rootfs.squashfs"] = b"x" * (3 * mib)
        if kept:
            world.tree.write_bytes(f"{rootfs_path(NEW_OS)}.partial", b"x" * (kept * mib))
        monkeypatch.setattr(room, "free_bytes", lambda _: missing * mib)
        assert await findings(world) == {}
        monkeypatch.setattr(room, "free_bytes", lambda _: missing * mib - 1)
        assert await findings(world) == {
            "persistent-partition": f"The upgrade needs {missing} MiB in /usr/local, which has {missing - 1} MiB free. "
            "Free space there."
        }


async def test_repository_that_does_not_answer_is_not_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with os_world(tmp_path) as world:
        world.iso.errors = [Transient("the upgrade repository returned HTTP 503")] * 1000
        assert await findings(world) == {}
        world.programs.state.free_mib = 4675
        monkeypatch.setattr(room, "free_bytes", lambda _: RESERVE - 1)
        assert set(await findings(world)) == {"state-partition", "persistent-partition"}


async def test_repository_that_serves_no_release_is_a_finding(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        del world.iso.files["/harvester-release.yaml"]
        found = await findings(world)
        assert set(found) == {"persistent-partition"}
        assert "/harvester-release.yaml does not exist on the ISO" in found["persistent-partition"]


@pytest.mark.parametrize(("free", "fits"), [(2476, True), (2475, False)])
async def test_fallback_that_runs_is_not_to_be_removed(tmp_path: Path, free: int, *, fits: bool) -> None:
    """post-drain frees the 2,400 MiB of the image that did not boot."""
    async with os_world(tmp_path) as world:
        boot_fallback(world)
        world.programs.state.free_mib = free
        found = await findings(world)
        assert set(found) == {"boot-slot"} | (set() if fits else {"state-partition"})
        assert fits or found["state-partition"].endswith("which has 4875 MiB for it. Enlarge the partition.")
