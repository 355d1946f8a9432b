"""Which image runs decides what an upgrade keeps, on a host whose images have real inodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.managers.sweep import Sweep
from tests.support.toolkit.os_upgrade import (
    NEW_OS,
    OLD_OS,
    ROOTFS,
    RUNNING,
    boot,
    boot_fallback,
    boots,
    elementals,
    expected_elementals,
    is_upgraded,
    keeps_old_os,
    new_host,
    os_iso,
    os_world,
    power_cut,
    rename,
    runs_from,
)
from tests.support.toolkit.toolkit import ToolkitWorld
from tests.support.toolkit.toolkit_interrupts import count_points, run_killed, run_killed_before
from upgrade_manager.toolkit.host.host_paths import ACTIVE_IMAGE, PASSIVE_IMAGE
from upgrade_manager.toolkit.os.running_image import running_image
from upgrade_manager.toolkit.run.errors import StepFailed

COMMAND = "node post-drain"
OTHER_OS = "Harvester v1.8.1"
_REBOOT = "Reboot node node-0 from its disk, and retry the upgrade"
_ROOT = "24 1 {} / / ro,relatime shared:1 - ext2 /dev/root ro\n"


async def _failure(world: ToolkitWorld) -> str:
    with pytest.raises(StepFailed) as error:
        await world.run(COMMAND)
    return str(error.value)


@pytest.mark.rule("nodes: the image that a node runs is kept, also when it is the fallback")
async def test_fallback_that_runs_is_kept_by_the_next_upgrade(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        boot_fallback(world)
        assert runs_from(world) == "passive.img"
        await world.run(COMMAND)
        assert is_upgraded(world)
        assert runs_from(world) == "passive.img"


@pytest.mark.parametrize(
    "state",
    [
        pytest.param({"damage": "renames"}, id="elemental fails between its renames"),
        pytest.param({"damage": "content"}, id="the new image is corrupt"),
        pytest.param({"failing": {"elemental upgrade --logfile": "Illegal instruction"}}, id="elemental fails"),
    ],
)
async def test_fallback_that_runs_survives_a_failure(tmp_path: Path, state: dict[str, object]) -> None:
    async with os_world(tmp_path) as world:
        boot_fallback(world)
        for name, value in state.items():
            setattr(world.programs.state, name, value)
        assert (await _failure(world)).endswith(f"The node keeps {OLD_OS}")
        assert keeps_old_os(world)
        assert runs_from(world) == "active.img"
        power_cut(world)
        world.programs.state.damage, world.programs.state.failing = "", {}
        await world.run(COMMAND)
        assert is_upgraded(world)


@pytest.mark.parametrize("is_cut", [False, True], ids=["the next Pod continues", "the host loses its power"])
@pytest.mark.thin
@pytest.mark.full
async def test_fallback_survives_a_kill_at_every_effect(tmp_path: Path, sweep: Sweep, *, is_cut: bool) -> None:
    async with os_world(tmp_path) as world:
        boot_fallback(world)
        points = await count_points(world, COMMAND)
        for at in sweep.points(0, points - 1, stride=1):
            await new_host(world, tmp_path / str(at))
            boot_fallback(world)
            where = await run_killed(world, COMMAND, at=at)
            assert boots(world), where
            assert not runs_from(world).endswith("(deleted)"), where
            if is_cut:
                power_cut(world)
            await world.run(COMMAND)
            assert boots(world), where
            if not is_cut:
                assert is_upgraded(world), where
                assert elementals(world) == expected_elementals(where), where


@pytest.mark.full
async def test_failure_of_a_fallback_survives_every_kill(tmp_path: Path, sweep: Sweep) -> None:
    async with os_world(tmp_path) as world:
        for at in sweep.points(20, 100, stride=1):
            await new_host(world, tmp_path / str(at))
            boot_fallback(world)
            world.programs.state.damage = "metadata"
            try:
                where = await run_killed(world, COMMAND, at=at)
            except StepFailed:
                break
            assert not runs_from(world).endswith("(deleted)"), where
            assert "is corrupt" in await _failure(world), where
            assert keeps_old_os(world), where
            assert runs_from(world) == "active.img", where
        else:
            pytest.fail("no run ended before its kill")


@pytest.mark.rule("nodes: an operating system that waits for its first boot is not replaced")
async def test_second_installation_in_one_boot_is_refused(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        await world.run(COMMAND)
        world.iso.files = os_iso(os=OTHER_OS)
        assert await _failure(world) == (
            f"check-os: {NEW_OS} was installed since the last boot, and was not booted. {_REBOOT}"
        )
        assert elementals(world) == 1
        assert (world.tree.read(ACTIVE_IMAGE), world.tree.read(PASSIVE_IMAGE)) == (ROOTFS, RUNNING)
        boot(world, NEW_OS)
        await world.run(COMMAND)
        assert world.programs.state.next_os == OTHER_OS
        assert world.tree.read(PASSIVE_IMAGE) == ROOTFS


async def test_installation_that_was_not_checked_is_replaced(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        await run_killed_before(world, COMMAND, "host  sync /run")
        assert world.tree.read(ACTIVE_IMAGE) == ROOTFS
        world.iso.files = os_iso(os=OTHER_OS)
        await world.run(COMMAND)
        assert world.programs.state.next_os == OTHER_OS
        assert world.tree.read(PASSIVE_IMAGE) == RUNNING


async def test_installation_by_another_program_is_refused(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        rename(world, ACTIVE_IMAGE, PASSIVE_IMAGE)
        world.tree.write(ACTIVE_IMAGE, "of an operator\n")
        assert await _failure(world) == (
            "check-os: another program has replaced /run/initramfs/cos-state/cOS/active.img since the last boot. "
            f"{_REBOOT}"
        )
        assert elementals(world) == 0


async def test_node_whose_image_was_removed_is_refused(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        rename(world, ACTIVE_IMAGE, PASSIVE_IMAGE)
        for text in ("first\n", "second\n"):
            world.tree.write(ACTIVE_IMAGE, text)
            rename(world, ACTIVE_IMAGE, PASSIVE_IMAGE)
        assert runs_from(world) == "passive.img (deleted)"
        assert await _failure(world) == (
            "check-os: an installation since the last boot has removed the image that the node runs (passive.img). "
            f"{_REBOOT}"
        )
        assert elementals(world) == 0


async def test_image_removed_during_the_installation_is_an_alarm(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:

        def lose(part: str) -> None:
            if part == "the removal of what it needed":
                world.tree.remove(PASSIVE_IMAGE)

        world.programs.stage = lose
        message = await _failure(world)
        assert message.startswith(
            "install-os: elemental returned 1: Failed mounting device /dev/sda4 with label COS_STATE (mount: "
            "/run/initramfs/cos-state: mount point is busy). See "
        )
        assert message.endswith(
            "DO NOT REBOOT node node-0: its previous operating system cannot be restored: an installation since the "
            "last boot has removed the image that the node runs (passive.img)"
        )


@pytest.mark.parametrize(
    ("mounts", "file", "found"),
    [
        pytest.param(
            _ROOT.format("7:0"), "/cOS/recovery.img", "/cOS/recovery.img, which is neither active.img", id="recovery"
        ),
        pytest.param(_ROOT.format("8:2"), "/cOS/active.img", "no image of a disk, which is", id="a disk"),
        pytest.param("", "/cOS/active.img", "no image of a disk, which is", id="no mounts"),
    ],
)
async def test_node_that_runs_neither_image_is_refused(tmp_path: Path, mounts: str, file: str, found: str) -> None:
    async with os_world(tmp_path) as world:
        world.tree.write("/proc/1/mountinfo", mounts)
        state = f"/run/initramfs/cos-state{file}"
        if "recovery" in file:
            rename(world, ACTIVE_IMAGE, state)
        message = await _failure(world)
        assert message.startswith("check-os: the node runs ")
        assert found in message
        assert elementals(world) == 0


async def test_other_loop_devices_do_not_count(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        for name, number, file in (
            ("loop1", "7:1", PASSIVE_IMAGE),
            ("loop2", "7:2", ""),
            ("sda", "8:0", PASSIVE_IMAGE),
        ):
            world.tree.write(f"/sys/block/{name}/dev", f"{number}\n")
            world.tree.write(f"/sys/block/{name}/loop/backing_file", f"{file}\n")
        assert running_image(world.tree) == ACTIVE_IMAGE
