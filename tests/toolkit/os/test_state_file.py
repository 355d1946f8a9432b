from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.managers.sweep import Sweep
from tests.support.toolkit.os_upgrade import NEW_OS, boot, keeps_old_os, new_host, os_world
from tests.support.toolkit.toolkit_interrupts import run_killed
from upgrade_manager.toolkit.host.host_paths import STATE_FILE
from upgrade_manager.toolkit.os.state_file import move_state_file, state_file_incomplete
from upgrade_manager.toolkit.run.errors import StepFailed

COMMAND = "node post-drain"
OLD = "date: 2022-10-11\nstate:\n  active:\n    label: COS_ACTIVE\n"
BACKUP = f"{STATE_FILE}.bak"


@pytest.mark.parametrize(
    ("text", "moves"),
    [
        pytest.param(None, False, id="no record"),
        pytest.param(OLD, True, id="without its label"),
        pytest.param(f"{OLD}  label: COS_STATE\n", False, id="with its label"),
        pytest.param("", True, id="empty"),
        pytest.param("date: 2022-10-11\n", True, id="without state"),
        pytest.param("state: [", False, id="no YAML"),
    ],
)
async def test_record_without_its_label_is_moved(tmp_path: Path, text: str | None, *, moves: bool) -> None:
    async with os_world(tmp_path) as world:
        if text is not None:
            world.tree.write(STATE_FILE, text)
        context = world.context()
        assert await state_file_incomplete(context) == (f"{STATE_FILE} has no state.label" if moves else "")
        if moves:
            await move_state_file(context)
            assert world.programs.state.mounts == {}
            assert await state_file_incomplete(context) == ""
        assert world.tree.read(BACKUP if moves else STATE_FILE) == text


async def test_node_that_runs_the_release_is_left_alone(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        world.tree.write(STATE_FILE, OLD)
        boot(world, NEW_OS)
        assert await state_file_incomplete(world.context()) == ""


async def test_record_that_cannot_be_read_fails_the_step(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        world.tree.make_directory(STATE_FILE)
        with pytest.raises(StepFailed, match=rf"^move-state-file: {STATE_FILE} cannot be read: Is a directory$"):
            await world.run(COMMAND)
        assert keeps_old_os(world)


@pytest.mark.full
async def test_killed_at_every_effect_the_next_run_ends_the_same(tmp_path: Path, sweep: Sweep) -> None:
    async with os_world(tmp_path) as world:
        for at in sweep.points(12, 40, stride=1):
            await new_host(world, tmp_path / str(at))
            world.tree.write(STATE_FILE, OLD)
            where = await run_killed(world, COMMAND, at=at)
            await world.run(COMMAND)
            assert world.tree.read(BACKUP) == OLD, where
            assert world.tree.read(STATE_FILE) is None, where
