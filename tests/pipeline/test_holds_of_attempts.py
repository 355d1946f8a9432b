"""A new attempt of a plan that pauses after nodes, or before their drain: nothing begins before the user lets it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hack.simulation import Simulation
from tests.pipeline.test_holds import let_past, until_held
from tests.pipeline.test_plan_pauses import BREAK
from tests.support.cluster.simulate import SECOND, RepairableScenario, fault
from tests.support.managers.begun_while_paused import BegunWhilePaused, holds
from tests.support.managers.upgrade import BY_VERSION, UpgradeRun, condition, node_states
from upgrade_manager.api.keys import HARVESTER_SYSTEM
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import JOBS, UPGRADE_PLANS

pytestmark = pytest.mark.full


@asynccontextmanager
async def resumed(
    job: str,
    *,
    name: str = "three-nodes",
    entries: dict[str, Any] | None = None,
    pauses: int = 2,
    paused: bool | None = None,
    **option: Any,
) -> AsyncIterator[UpgradeRun]:
    """Provide a plan whose second node, or only node, failed in that Job, and that goes on with these options.

    `entries` are changes of the nodes' entries in the status meanwhile.
    """
    scenario = RepairableScenario.of(name, **fault(job, SECOND if name == "three-nodes" else ""))
    async with Simulation(scenario) as simulation:
        watch, stage = BegunWhilePaused(simulation), await UpgradeRun.set_up(simulation)
        async with stage.life():
            await stage.create_plan(BY_VERSION)
            await stage.fail()
            scenario.repair()
            status = MergePatch({"status": {"nodeUpgradeStatuses": entries or {}}})
            await stage.client.patch(UPGRADE_PLANS, stage.name, status, subresource="status")
            await stage.patch(spec={"attempt": 2, "paused": paused, "nodeUpgradeOption": option})
            yield stage
        assert (watch.found, watch.pauses) == ([], pauses)


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
@pytest.mark.thin
async def test_job_of_the_failed_node_holds(job: str, state: str, where: str) -> None:
    async with resumed(job, pauseAfter=1) as stage:
        await stage.until_plan(holds)
        await asyncio.sleep(BREAK)
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
        await asyncio.sleep(BREAK)
        plan = await stage.plan()
        assert node_states(plan) == {"node-0": "PostDrained", "node-1": "ImagePreloaded", "node-2": "PreDraining"}
        assert condition(plan, "Paused")[:2] == ("True", "PauseBefore")
        await let_past(stage, "node-2:Drain")
        await until_held(stage, "node-1", "Drain")
        await let_past(stage, "node-1:Drain")
        await stage.succeed()


@pytest.mark.rule("control: a step that the next attempt repeats holds again, also of a node that has not failed")
async def test_repeated_drain_of_another_node_holds_again() -> None:
    """A user had let it past its drain, and its Job was lost with the failure of the second node."""
    beside = {"node-1": {"state": "PreDraining", "continued": ["Drain"]}}
    async with resumed("pre-drain", entries=beside, pauseBefore=["Drain"]) as stage:
        await until_held(stage, "node-2", "Drain")
        await let_past(stage, "node-2:Drain")
        await until_held(stage, "node-1", "Drain")
        plan = await stage.plan()
        assert node_states(plan)["node-1"] == "PreDraining"
        assert "continued" not in objects.status(plan)["nodeUpgradeStatuses"]["node-1"]
        await let_past(stage, "node-1:Drain")
        await stage.succeed()


async def test_node_that_held_at_the_failure_holds_up_no_attempt() -> None:
    """A pause of the attempt ends with its event, and not with the hold that the failed attempt has recorded."""
    held = {"node-1": {"holds": "Drain"}}
    async with resumed("pre-drain", entries=held, pauses=3, paused=True, pauseBefore=["Drain"]) as stage:
        await stage.until_plan(lambda plan: objects.status(plan).get("holds") == "before attempt 2")
        await asyncio.sleep(60)
        await stage.patch(spec={"paused": None})
        await until_held(stage, "node-2", "Drain")
        found = [event["message"].partition(" (")[0] for event in await stage.events("UpgradeContinued")]
        assert found == ["Continued after 1 min 0 s"]
        for node in ("node-2", "node-1"):
            await until_held(stage, node, "Drain")
            await let_past(stage, f"{node}:Drain")
        await stage.succeed()


@pytest.mark.rule("control: pauseBefore holds each node before its drain and its reboot, until a user lets it go on")
async def test_repeated_job_of_the_only_node_holds() -> None:
    async with resumed("single-node-upgrade", name="one-node", pauses=1, pauseBefore=["Drain"]) as stage:
        await until_held(stage, "node-0", "Drain")
        await asyncio.sleep(BREAK)
        plan = await stage.plan()
        assert node_states(plan) == {"node-0": "SingleNodeUpgrading"}
        assert condition(plan, "Paused")[:2] == ("True", "PauseBefore")
        names = map(objects.name, (await stage.client.list(JOBS, namespace=HARVESTER_SYSTEM)).items)
        assert [name for name in names if name.endswith("-a2")] == []
        await let_past(stage, "node-0:Drain")
        await stage.until("NodeUpgraded", "CleaningUp", "Succeeded")
        await stage.succeed()
