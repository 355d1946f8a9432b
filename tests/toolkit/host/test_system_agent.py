from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.toolkit.toolkit import toolkit_world
from upgrade_manager.toolkit.host.host_programs import Call, Output
from upgrade_manager.toolkit.host.system_agent import restore_system_agent, system_agent_override
from upgrade_manager.toolkit.run.errors import ProgramFailed

FOLDER = "/run/systemd/system/rancher-system-agent.service.d"
OVERRIDE, ENVIRONMENT = f"{FOLDER}/override.conf", f"{FOLDER}/10-harvester-upgrade.env"
UNIT = "rancher-system-agent.service"
RESTART = ["systemctl daemon-reload", f"systemctl restart {UNIT}"]


@pytest.mark.parametrize("files", [[OVERRIDE, ENVIRONMENT], [OVERRIDE], [ENVIRONMENT]])
async def test_override_is_removed_and_the_agent_restarted(tmp_path: Path, files: list[str]) -> None:
    async with toolkit_world(tmp_path) as world:
        for path in files:
            world.tree.write(path, "[Service]\n")
        context = world.context()
        assert await system_agent_override(context) == f"{UNIT} is overridden by {', '.join(files)}"
        await restore_system_agent(context)
        assert await system_agent_override(context) == ""
        assert not world.tree.exists(FOLDER)
        assert world.programs.state.calls[:2] == RESTART
        assert world.programs.state.unit_drop_ins == {UNIT: []}


async def test_nothing_to_restore_restarts_nothing(tmp_path: Path) -> None:
    async with toolkit_world(tmp_path) as world:
        world.tree.write(f"{FOLDER}/user.conf", "[Service]\n")
        assert await system_agent_override(world.context()) == ""


async def test_files_of_users_are_kept(tmp_path: Path) -> None:
    async with toolkit_world(tmp_path) as world:
        for path in (OVERRIDE, f"{FOLDER}/user.conf"):
            world.tree.write(path, "[Service]\n")
        await restore_system_agent(world.context())
        assert world.tree.names(FOLDER) == ["user.conf"]


@pytest.mark.parametrize("failing", ["systemctl daemon-reload", "systemctl restart", "systemctl show"])
async def test_failed_restoration_is_repeated(tmp_path: Path, failing: str) -> None:
    async with toolkit_world(tmp_path) as world:
        world.tree.write(OVERRIDE, "[Service]\n")
        world.programs.state.failing = {failing: "Failed to connect to bus"}
        with pytest.raises(ProgramFailed, match="systemctl returned 1: Failed to connect to bus"):
            await restore_system_agent(world.context())
        assert not world.tree.exists(OVERRIDE)
        assert await system_agent_override(world.context()) != ""
        world.programs.state.failing = {}
        await restore_system_agent(world.context())
        assert await system_agent_override(world.context()) == ""
        assert world.programs.state.unit_drop_ins == {UNIT: []}


class Ignoring:
    """systemctl in a chroot without the host's process 1: it succeeds and does nothing."""

    async def run(self, call: Call) -> Output:
        return Output(status=0, stderr=f"Running in chroot, ignoring command '{call.argv[1]}'")


async def test_ignored_restart_is_a_failure(tmp_path: Path) -> None:
    async with toolkit_world(tmp_path) as world:
        world.tree.write(OVERRIDE, "[Service]\n")
        with pytest.raises(ProgramFailed, match="is in an unknown state after its restart, not active"):
            await restore_system_agent(world.context(programs=Ignoring()))
        assert await system_agent_override(world.context()) != ""
