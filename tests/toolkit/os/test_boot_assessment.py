"""GRUB's mark of a boot that did not end is removed before another image is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from hack.host import boot_assessment
from tests.support.toolkit.os_upgrade import boot_fallback, is_upgraded, new_host, os_world, power_cut, runs_from
from tests.support.toolkit.toolkit import ToolkitWorld
from tests.support.toolkit.toolkit_interrupts import run_killed_before
from upgrade_manager.toolkit.host.grub_environment import empty_block, with_value
from upgrade_manager.toolkit.host.host_paths import BOOT_ASSESSMENT, STATE_PARTITION
from upgrade_manager.toolkit.os.boot_assessment import MARK
from upgrade_manager.toolkit.run.errors import StepFailed

COMMAND = "node post-drain"
UNSET = f"grub2-editenv {BOOT_ASSESSMENT} unset {MARK}"


def mark(world: ToolkitWorld) -> None:
    boot_assessment.fail(world.tree.path(STATE_PARTITION))


def unsets(world: ToolkitWorld) -> int:
    return world.programs.state.calls.count(UNSET)


@pytest.mark.rule("nodes: GRUB tries what was installed on a node that runs its fallback")
async def test_release_is_tried_after_a_boot_that_did_not_end(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        boot_fallback(world)
        assert boot_assessment.starts_fallback(world.tree.path(STATE_PARTITION))
        await world.run(COMMAND)
        assert is_upgraded(world)
        assert unsets(world) == 1


async def test_mark_that_the_active_image_has_kept_is_removed(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        mark(world)
        await world.run(COMMAND)
        assert is_upgraded(world)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(None, id="no file"),
        pytest.param(empty_block(), id="no mark"),
        pytest.param(with_value(empty_block(), MARK, ""), id="an empty mark, as elemental removes it"),
        pytest.param(b"", id="an empty file"),
        pytest.param(b"yes\n", id="no block"),
    ],
)
async def test_nothing_is_written_without_a_mark(tmp_path: Path, content: bytes | None) -> None:
    async with os_world(tmp_path) as world:
        if content is not None:
            world.tree.write_bytes(BOOT_ASSESSMENT, content)
        await world.run(COMMAND)
        assert unsets(world) == 0


async def test_killed_command_removes_the_mark_when_it_is_repeated(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        for cut in (False, True):
            await new_host(world, tmp_path / f"{cut}")
            boot_fallback(world)
            await run_killed_before(world, COMMAND, f"host  {UNSET}")
            if cut:
                # The fallback is the active image by now; GRUB finds no other one.
                power_cut(world)
            assert runs_from(world) == "active.img"
            await world.run(COMMAND)
            assert is_upgraded(world)


@pytest.mark.parametrize(
    ("failing", "message"),
    [
        ("unreadable", f"check-os: {BOOT_ASSESSMENT} cannot be read: Is a directory"),
        ("program", "check-os: grub2-editenv returned 1: invalid option"),
    ],
)
async def test_mark_that_cannot_be_removed_fails_the_step(tmp_path: Path, failing: str, message: str) -> None:
    async with os_world(tmp_path) as world:
        if failing == "unreadable":
            world.tree.make_directory(BOOT_ASSESSMENT)
        else:
            mark(world)
            world.programs.state.failing = {UNSET: "invalid option"}
        with pytest.raises(StepFailed, match=message):
            await world.run(COMMAND)
