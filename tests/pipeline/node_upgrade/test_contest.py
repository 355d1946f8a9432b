"""Drain hooks that another client removes again and again."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from hack import scenario as scenarios
from tests.support.managers.upgrade import condition, started
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import PROVISIONING_CLUSTERS
from upgrade_manager.pipeline.node_upgrade.contest import OVER

if TYPE_CHECKING:
    from tests.support.cluster.simulate import Simulate
    from tests.support.managers.upgrade import UpgradeRun

NO_HOOKS: dict[str, Any] = {"preDrainHooks": None, "postDrainHooks": None}
OPTIONS = {"controlPlaneDrainOptions": NO_HOOKS, "workerDrainOptions": NO_HOOKS}


async def remove_hooks(stage: UpgradeRun, times: int) -> None:
    """Remove the hooks every five seconds."""
    for _ in range(times):
        body = {"spec": {"rkeConfig": {"upgradeStrategy": OPTIONS}}}
        await stage.client.patch(PROVISIONING_CLUSTERS, "local", MergePatch(body), namespace="fleet-local")
        await asyncio.sleep(5)


@pytest.mark.rule("blockers: drain hooks that are removed again and again are one blocker that names the client")
async def test_contested_strategy_is_one_blocker(simulate: Simulate) -> None:
    scenario = {"durations": {"pre_drain": 900}}
    async with simulate(scenarios.load("three-nodes").changed(**scenario)) as simulation, started(simulation) as stage:
        await stage.until_node("PreDraining")
        await remove_hooks(stage, 2)
        assert "blockers" not in objects.status(await stage.plan())
        await remove_hooks(stage, 10)
        plan = await stage.plan()
        assert condition(plan, "Stalled")[:2] == ("True", "StrategyContested")
        (blocker,) = objects.status(plan)["blockers"]
        assert (blocker["kind"], blocker["name"]) == ("Cluster", "local")
        assert (
            "removes the manager's drain hooks from spec.rkeConfig.upgradeStrategy again and again"
            in blocker["message"]
        )
        warnings = [reason for reason, _ in await stage.warnings()]
        assert (warnings.count("DrainHooksAdded"), warnings.count("StrategyContested")) == (2, 1)
        await asyncio.sleep(2 * OVER.total_seconds())
        assert "blockers" not in objects.status(await stage.plan())
        await stage.succeed()
