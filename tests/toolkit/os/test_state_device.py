from __future__ import annotations

from pathlib import Path

import pytest

from hack.host.os_programs import ELEMENTAL_STATE
from tests.support.managers.sweep import Sweep
from tests.support.toolkit.os_upgrade import is_clean, is_upgraded, keeps_old_os, new_host, os_world
from tests.support.toolkit.toolkit import ToolkitWorld
from tests.support.toolkit.toolkit_interrupts import run_killed
from upgrade_manager.toolkit.run.errors import StepFailed

COMMAND = "node post-drain"
DEVICE = "/dev/mapper/mpatha4"
MOUNT, UNMOUNT = f"mount -o ro {DEVICE} {ELEMENTAL_STATE}", f"umount {ELEMENTAL_STATE}"


def calls(world: ToolkitWorld) -> list[str]:
    """Return the calls about that mount, and elemental's."""
    names = {MOUNT: "mount", UNMOUNT: "unmount"}
    found = (names.get(call, "elemental" if "--logfile" in call else "") for call in world.programs.state.calls)
    return [name for name in found if name]


async def test_mapper_is_mounted_while_elemental_runs(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        world.programs.state.state_device = DEVICE
        await world.run(COMMAND)
        assert calls(world) == ["mount", "elemental", "unmount", "unmount"]
        assert is_upgraded(world)
        await world.run(COMMAND)
        assert calls(world).count("mount") == 1


@pytest.mark.parametrize("device", ["/dev/sda4", ""])
async def test_other_devices_are_not_mounted(tmp_path: Path, device: str) -> None:
    async with os_world(tmp_path) as world:
        world.programs.state.state_device = device
        await world.run(COMMAND)
        assert calls(world) == ["elemental"]
        assert not world.tree.exists(ELEMENTAL_STATE)


async def test_mapper_is_unmounted_after_a_failure(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        world.programs.state.state_device = DEVICE
        world.programs.state.failing = {"elemental upgrade --logfile": "level=error msg=rsync failed"}
        with pytest.raises(StepFailed, match="rsync failed"):
            await world.run(COMMAND)
        assert calls(world) == ["mount", "elemental", "unmount"]
        assert world.programs.state.mounts == {}
        assert keeps_old_os(world)
        world.programs.state.failing = {}
        await world.run(COMMAND)
        assert is_upgraded(world)


@pytest.mark.parametrize(
    ("failing", "message"),
    [
        ("blkid", "install-os: blkid returned 1: Input/output error"),
        ("mount -o ro", "install-os: mount returned 1: Input/output error"),
    ],
)
async def test_device_that_cannot_be_mounted_fails_the_step(tmp_path: Path, failing: str, message: str) -> None:
    async with os_world(tmp_path) as world:
        world.programs.state.state_device = DEVICE
        world.programs.state.failing = {failing: "Input/output error"}
        with pytest.raises(StepFailed) as failed:
            await world.run(COMMAND)
        assert str(failed.value).startswith(message)
        assert keeps_old_os(world)
        assert "elemental" not in calls(world)


async def test_elemental_fails_without_the_mount(tmp_path: Path) -> None:
    """The simulated elemental does what was seen of the real one."""
    async with os_world(tmp_path) as world:
        world.programs.state.state_device = "/dev/sda4"
        run = world.programs.run

        async def with_mapper(call: object) -> object:
            if "--logfile" in getattr(call, "argv", ()):
                world.programs.state.state_device = DEVICE
            return await run(call)  # type: ignore[arg-type]

        world.programs.run = with_mapper  # type: ignore[method-assign,assignment]
        with pytest.raises(StepFailed, match="read-only"):
            await world.run(COMMAND)


@pytest.mark.full
async def test_killed_at_every_effect_the_next_run_ends_the_same(tmp_path: Path, sweep: Sweep) -> None:
    async with os_world(tmp_path) as world:
        for at in sweep.points(20, 60, stride=1):
            await new_host(world, tmp_path / str(at))
            world.programs.state.state_device = DEVICE
            where = await run_killed(world, COMMAND, at=at)
            await world.run(COMMAND)
            assert is_upgraded(world), where
            assert is_clean(world), where
