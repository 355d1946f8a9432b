"""The room for a new image on the state partition, which holds the new system twice while elemental runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.toolkit.os_upgrade import (
    OLD_OS,
    boot,
    elementals,
    is_upgraded,
    keeps_old_os,
    os_iso,
    os_world,
)
from tests.support.toolkit.toolkit import ToolkitWorld
from tests.support.toolkit.toolkit_interrupts import run_killed_before
from upgrade_manager.toolkit.host.host_paths import TRANSITION_IMAGE, TRANSITION_TREE
from upgrade_manager.toolkit.run.errors import OutOfSpace, StepFailed

COMMAND = "node post-drain"
_OTHER = os_iso(os="Harvester v1.8.1", files="/usr/lib/modules/of-1.8.1\n")


async def _leave(world: ToolkitWorld, part: str) -> None:
    """Kill an upgrade to another release while elemental works, and boot the host again."""
    files, world.iso.files = world.iso.files, _OTHER
    await run_killed_before(world, COMMAND, f"elemental, before {part}")
    boot(world, OLD_OS)
    world.iso.files = files


@pytest.mark.parametrize("part", ["the second half of the tree", "the image", "the removal of the tree"])
async def test_files_of_a_killed_elemental_stay_out_of_the_image(tmp_path: Path, part: str) -> None:
    async with os_world(tmp_path) as world:
        await _leave(world, part)
        assert world.tree.exists(TRANSITION_TREE)
        await world.run(COMMAND)
        assert is_upgraded(world)


@pytest.mark.parametrize("part", ["the image", "the second half of the image"])
async def test_left_files_are_removed_before_the_room_is_measured(tmp_path: Path, part: str) -> None:
    async with os_world(tmp_path) as world:
        await _leave(world, part)
        world.programs.state.free_mib = 5086
        await world.run(COMMAND)
        assert is_upgraded(world)


async def test_loop_device_of_a_killed_elemental_is_detached(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        await run_killed_before(world, COMMAND, "elemental, before the second half of the image")
        assert world.tree.exists("/sys/block/loop7")
        world.programs.state.failing = {"losetup": "losetup: /dev/loop7: detach failed: Device or resource busy"}
        await world.run(COMMAND)
        assert "losetup --detach /dev/loop7" in world.programs.state.calls
        assert is_upgraded(world)


async def test_left_files_that_cannot_be_removed_are_named(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        await _leave(world, "the image")
        skipped = f"rm: skipping '{TRANSITION_TREE}/usr/local', since it's on a different device"
        world.programs.state.failing = {"rm --recursive --force --one-file-system": skipped}
        with pytest.raises(StepFailed, match=r"^check-os: rm returned 1: rm: skipping .*imgTree/usr/local"):
            await world.run(COMMAND)
        assert keeps_old_os(world)


@pytest.mark.rule("nodes: a state partition that would run full is refused before any change")
@pytest.mark.parametrize("rootfs", [1960, 2100, 2350])
async def test_partition_of_8_gib_is_refused_before_elemental(tmp_path: Path, rootfs: int) -> None:
    async with os_world(tmp_path) as world:
        state = world.programs.state
        # The room that an old and a running image leave free.
        state.rootfs_mib, state.image_mib, state.free_mib = rootfs, rootfs + 100, 7900 - 2 * (rootfs + 100)
        with pytest.raises(
            OutOfSpace, match=f"^check-os: the new operating system needs {int(rootfs * 2.1) + 256} MiB"
        ):
            await world.run(COMMAND)
        assert elementals(world) == 0
        assert keeps_old_os(world)


@pytest.mark.parametrize("at_once", [False, True])
async def test_full_partition_ends_elemental_before_its_renames(tmp_path: Path, *, at_once: bool) -> None:
    async with os_world(tmp_path) as world:
        state = world.programs.state
        state.free_mib, state.copy_seconds = 5086, 60.0

        def write(part: str) -> None:
            if at_once or part == "the second half of the image":
                # Another program fills the partition meanwhile.
                state.free_mib = 3500

        world.programs.stage = write
        with pytest.raises(StepFailed) as error:
            await world.run(COMMAND)
        assert str(error.value) == (
            "install-os: /run/initramfs/cos-state ran full while elemental wrote to it (0 MiB are left). See "
            f"/usr/local/harvester-upgrade/os/elemental.log on node node-0. The node keeps {OLD_OS}"
        )
        assert keeps_old_os(world)
        assert not world.tree.exists(TRANSITION_TREE)
        assert not world.tree.exists(TRANSITION_IMAGE)
        assert not any(call.startswith("mv") for call in state.calls)
        assert state.mounts == {}
        world.programs.stage, state.free_mib = lambda _: None, 5086
        await world.run(COMMAND)
        assert is_upgraded(world)


async def test_free_space_that_cannot_be_read_does_not_end_elemental(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        await run_killed_before(world, COMMAND, "host  elemental upgrade --logfile")
        world.programs.state.copy_seconds = 60.0
        world.programs.state.failing = {"df": "df: no file systems processed"}
        await world.run(COMMAND)
        assert is_upgraded(world)
