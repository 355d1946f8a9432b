"""A new attempt of a plan that pauses after nodes, or before their drain: nothing begins before the user lets it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hack.simulation import Simulation
from tests.pipeline.test_holds import let_past, until_held
from tests.pipeline.test_plan_pauses import NIGHT
from tests.support.cluster.simulate import SECOND, RepairableScenario, fault
from tests.support.managers.begun_while_paused import BegunWhilePaused, holds
from tests.support.managers.upgrade import BY_VERSION, UpgradeRun, condition, node_states
from upgrade_manager.api.keys import HARVESTER_SYSTEM
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import JOBS

pytestmark = pytest.mark.sampled


@asynccontextmanager
async def resumed(job: str, **option: Any) -> AsyncIterator[UpgradeRun]:
    """Provide a plan whose second node failed in that Job, and that goes on with these options; it pauses twice."""
    scenario = RepairableScenario.of("three-nodes", **fault(job, SECOND))
    async with Simulation(scenario) as simulation:
        watch, stage = BegunWhilePaused(simulation), await UpgradeRun.set_up(simulation)
        async with stage.life():
            await stage.create_plan(BY_VERSION)
            await stage.fail()
            scenario.repair()
            await stage.patch(spec={"attempt": 2, "nodeUpgradeOption": option})
            yield stage
        assert (watch.found, watch.pauses) == ([], 2)


@pytest.mark.rule(
    "control: nothing begins while the plan says that it holds, whenever users pause and continue it",
    "control: pauseAfter pauses the upgrade after so many nodes, until it is raised or removed",
)
@pytest.mark.parametrize(
    ("job", "state", "where"),
    [
        pytest.param("pre-drain", "PreDraining", "before the drain of node-2", id="pre-drain"),
        pytest.param("post-drain", "PostDraining", "before the post-drain Job of node-2", id="post-drain"),
    ],
)
async def test_job_of_the_failed_node_holds(job: str, state: str, where: str) -> None:
    async with resumed(job, pauseAfter=1) as stage:
        await stage.until_plan(holds)
        await asyncio.sleep(NIGHT)
        plan = await stage.plan()
        assert node_states(plan) == {"node-0": "PostDrained", "node-1": "ImagePreloaded", "node-2": state}
        status, reason, message = condition(plan, "Paused")
        assert (status, reason) == ("True", "PauseAfter")
        assert f". The upgrade holds {where}, and nothing of it runs. " in message
        assert objects.status(plan).get("blockers") is None
        names = map(objects.name, (await stage.client.list(JOBS, namespace=HARVESTER_SYSTEM)).items)
        assert [name for name in names if name.endswith("-a2")] == []
        await stage.patch(spec={"nodeUpgradeOption": {"pauseAfter": 2}})
        await stage.until_plan(lambda now: node_states(now)["node-2"] == "PostDrained" and holds(now))
        await stage.patch(spec={"nodeUpgradeOption": {"pauseAfter": None}})
        await stage.succeed()


@pytest.mark.rule("control: pauseBefore holds each node before its drain and its reboot, until a user lets it go on")
async def test_repeated_pre_drain_of_the_failed_node_holds() -> None:
    async with resumed("pre-drain", pauseBefore=["Drain"]) as stage:
        await until_held(stage, "node-2", "Drain")
        await asyncio.sleep(NIGHT)
        plan = await stage.plan()
        assert node_states(plan) == {"node-0": "PostDrained", "node-1": "ImagePreloaded", "node-2": "PreDraining"}
        assert condition(plan, "Paused")[:2] == ("True", "PauseBefore")
        await let_past(stage, "node-2:Drain")
        await until_held(stage, "node-1", "Drain")
        await let_past(stage, "node-1:Drain")
        await stage.succeed()
