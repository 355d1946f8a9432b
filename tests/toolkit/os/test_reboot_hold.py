"""The hold before the reboot, as the Pod sees it; tests/pipeline/test_holds.py has it in whole upgrades."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.support.cluster.kubectl import manifest
from tests.support.toolkit.os_upgrade import os_world
from tests.support.toolkit.toolkit import ToolkitWorld
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import UPGRADE_PLANS
from upgrade_manager.toolkit.os.reboot_hold import HOLD_BEFORE_REBOOT, reboot_held
from upgrade_manager.toolkit.run.errors import StepFailed

COMMAND = "node post-drain"


async def _set(world: ToolkitWorld, *, pause_before: list[str], continued: list[str]) -> None:
    client = world.simulation.client()
    spec = {"spec": {"nodeUpgradeOption": {"pauseBefore": pause_before}}}
    await client.patch(UPGRADE_PLANS, "demo", MergePatch(spec))
    nodes: dict[str, Any] = {"node-0": {"state": "PostDraining", "continued": continued}}
    status = {"status": {"nodeUpgradeStatuses": nodes}}
    await client.patch(UPGRADE_PLANS, "demo", MergePatch(status), subresource="status")


@pytest.mark.rule("control: the Pod of our toolkit holds before the reboot, and reads the plan every 10 s")
async def test_pod_holds_until_the_plan_lets_it_go_on(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        await _set(world, pause_before=["Reboot"], continued=["Drain"])
        run = asyncio.create_task(world.run(COMMAND, holds=True))
        await asyncio.sleep(9 * 3600)
        assert not run.done()
        assert world.programs.state.reboot_after == ""
        await _set(world, pause_before=["Reboot"], continued=["Drain", "Reboot"])
        async with asyncio.timeout(2 * HOLD_BEFORE_REBOOT.poll):
            await run
        assert world.programs.state.reboot_after
        assert HOLD_BEFORE_REBOOT.poll == 10


@pytest.mark.parametrize(
    ("holds", "points", "continued", "expected"),
    [
        pytest.param(True, ["Reboot"], [], "the reboot waits for: upgrade-manager continue demo node-0", id="it holds"),
        pytest.param(True, ["Drain"], [], "", id="it need not hold any more"),
        pytest.param(True, ["Reboot"], ["Reboot"], "", id="a user lets it go on"),
        pytest.param(False, ["Reboot"], [], "", id="its Job began without a hold"),
    ],
)
async def test_hold_follows_the_plan(
    holds: object, points: list[str], continued: list[str], expected: str, tmp_path: Path
) -> None:
    async with os_world(tmp_path) as world:
        await _set(world, pause_before=points, continued=continued)
        assert await reboot_held(world.context(holds=holds)) == expected


@pytest.mark.rule("control: a Job whose plan was deleted or replaced stops no VM, and does not reboot from a hold")
@pytest.mark.parametrize("follows", [False, True], ids=["deleted", "replaced"])
async def test_node_without_its_plan_is_not_rebooted(tmp_path: Path, *, follows: bool) -> None:
    async with os_world(tmp_path) as world:
        client = world.simulation.client()
        plan = await client.get(UPGRADE_PLANS, "demo")
        await client.delete(UPGRADE_PLANS, objects.name(plan))
        if follows:
            await client.create(UPGRADE_PLANS, manifest("demo"))
        with pytest.raises(StepFailed, match="UpgradePlan demo was deleted while node node-0 held before its reboot"):
            await reboot_held(world.context(holds=True, plan_uid=objects.uid(plan)))
