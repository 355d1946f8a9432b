"""Whole upgrades with paused and resumed nodes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from hack.simulation import Simulation
from tests.support.upgrade import BY_VERSION, UpgradeRun, condition
from upgrade_manager.api.phases import PHASES, SUCCEEDED
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import JOBS, PODS, UPGRADE_PLANS

if TYPE_CHECKING:
    from tests.support.simulate import Simulate
    from upgrade_manager.kube.objects import Object

PLACE = "harvester-system"
LIST = "spec.nodeUpgradeOption.pauseNodes"
#: Rancher's order.
FIRST, SECOND, THIRD = "node-0", "node-2", "node-1"


def pausing(*nodes: str, **more: Any) -> dict[str, Any]:
    return {**BY_VERSION, **more, "nodeUpgradeOption": {"pauseNodes": list(nodes)}}


async def pause(stage: UpgradeRun, *nodes: str) -> None:
    patch = MergePatch({"spec": {"nodeUpgradeOption": {"pauseNodes": list(nodes)}}})
    await stage.simulation.client().patch(UPGRADE_PLANS, stage.name, patch)


def states(plan: Object) -> dict[str, str]:
    return {name: entry["state"] for name, entry in objects.status(plan).get("nodeUpgradeStatuses", {}).items()}


async def job(stage: UpgradeRun, node: str, step: str = "pre-drain") -> Object:
    return await stage.simulation.client().get(JOBS, f"upgrade-node-upgrade-{step}-{node}", namespace=PLACE)


async def is_suspended(stage: UpgradeRun, node: str, step: str = "pre-drain") -> bool:
    return bool(objects.spec(await job(stage, node, step)).get("suspend"))


async def until_resumed(stage: UpgradeRun, node: str, step: str = "pre-drain") -> None:
    """Wait until the Job is resumed, which is recorded before."""
    while await is_suspended(stage, node, step):  # noqa: ASYNC110  # not an event
        await asyncio.sleep(0.02)


async def until_state(stage: UpgradeRun, node: str, state: str, *, seconds: float = 240.0) -> Object:
    return await stage.until_plan(lambda plan: states(plan).get(node) == state, seconds=seconds)


async def warnings(stage: UpgradeRun) -> list[tuple[str, str]]:
    return [(event["reason"], event["message"]) for event in await stage.events() if event["type"] == "Warning"]


@pytest.mark.rule(
    "api: nodes in pauseNodes are held in UpgradePaused before they are drained",
    "nodes: removing the name from the list resumes the node within a second",
    "nodes: the Progressing message names paused nodes",
)
@pytest.mark.servers
async def test_listed_node_pauses_and_resumes_within_a_second(simulate: Simulate) -> None:
    async with simulate("three-nodes") as simulation:
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life():
            await stage.create_plan(pausing(SECOND))
            await until_state(stage, SECOND, "UpgradePaused")
            await stage.settle()
            plan = await stage.plan()
            waits = f"{SECOND} is paused (cordoned); remove it from {LIST} to continue (1 of 3 nodes done)"
            assert condition(plan, "Progressing") == ("True", "NodeUpgrading", waits)
            # Rancher upgrades one node at a time: the others wait for the paused one.
            assert states(plan) == {FIRST: "PostDrained", SECOND: "UpgradePaused", THIRD: "ImagePreloaded"}
            assert await is_suspended(stage, SECOND)
            held = objects.uid(await job(stage, SECOND))
            pods = (await simulation.client().list(PODS, namespace=PLACE)).items
            assert [pod for pod in pods if objects.owner_uid(pod) == held] == []
            await pause(stage)
            async with asyncio.timeout(1.0):
                await until_state(stage, SECOND, "PreDraining")
                await until_resumed(stage, SECOND)
            assert objects.uid(await job(stage, SECOND)) == held
            assert await stage.until_ended() == SUCCEEDED
        assert await warnings(stage) == []
        assert len(await stage.events()) == 2 * len(PHASES) + 1
        assert stage.ledger.conflicts == []


@pytest.mark.rule(
    "api: pauseNodes may change while the plan runs",
    "nodes: a name may be listed during the run",
)
async def test_name_added_during_another_nodes_upgrade_pauses() -> None:
    async with Simulation("three-nodes") as simulation:
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life():
            await stage.create_plan(BY_VERSION)
            await until_state(stage, FIRST, "PostDraining")
            await pause(stage, THIRD)
            await until_state(stage, THIRD, "UpgradePaused")
            assert states(await stage.plan())[SECOND] == "PostDrained"
            await pause(stage)
            assert await stage.until_ended() == SUCCEEDED


@pytest.mark.rule("nodes: listing a node that has started does not stop it")
@pytest.mark.parametrize("state", ["PreDraining", "PreDrained", "PostDraining", "WaitingReboot", "PostDrained"])
@pytest.mark.thin
async def test_started_node_is_not_paused(state: str) -> None:
    async with Simulation("three-nodes") as simulation:
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life():
            await stage.create_plan(BY_VERSION)
            await until_state(stage, FIRST, state)
            await pause(stage, FIRST)
            await until_state(stage, THIRD, "PostDrained")
            assert not await is_suspended(stage, FIRST)
            assert await stage.until_ended() == SUCCEEDED


@pytest.mark.rule("nodes: a listed node without pending hook is not paused yet")
async def test_all_nodes_pause_and_resume_one_at_a_time() -> None:
    async with Simulation("three-nodes") as simulation:
        stage = await UpgradeRun.set_up(simulation)
        left = [FIRST, SECOND, THIRD]
        async with stage.life():
            await stage.create_plan(pausing(*left))
            while left:
                plan = await until_state(stage, left[0], "UpgradePaused")
                assert [node for node, state in states(plan).items() if state == "UpgradePaused"] == [left[0]]
                await stage.settle()
                assert await stage.phase() == "NodeUpgrading"
                await pause(stage, *left[1:])
                del left[0]
            assert await stage.until_ended() == SUCCEEDED
        assert await warnings(stage) == []


async def test_emptied_list_resumes_nodes_one_at_a_time() -> None:
    async with Simulation("three-nodes") as simulation:
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life():
            await stage.create_plan(pausing(FIRST, SECOND, THIRD))
            await until_state(stage, FIRST, "UpgradePaused")
            await simulation.client().patch(
                UPGRADE_PLANS, stage.name, MergePatch({"spec": {"nodeUpgradeOption": None}})
            )
            assert await stage.until_ended() == SUCCEEDED


async def test_unknown_name_is_reported_and_ignored() -> None:
    async with Simulation("three-nodes") as simulation:
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life():
            await stage.create_plan(pausing("node-7"))
            plan = await until_state(stage, FIRST, "PreDraining")
            said = "pauseNodes lists unknown node node-7; ignored"
            assert condition(plan, "Progressing")[2].endswith(f"; {said}")
            assert await stage.until_ended() == SUCCEEDED
        assert await warnings(stage) == [("PauseNodesUnknown", said)]


@pytest.mark.rule("nodes: a listed node becomes UpgradePaused with a suspended Job when its hook is pending")
async def test_single_node_pauses() -> None:
    async with Simulation("one-node") as simulation:
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life():
            await stage.create_plan(pausing("node-0"))
            await until_state(stage, "node-0", "UpgradePaused")
            await stage.settle()
            assert await is_suspended(stage, "node-0", "single-node-upgrade")
            waits = f"node-0 is paused; remove it from {LIST} to continue (0 of 1 nodes done)"
            assert condition(await stage.plan(), "Progressing")[2] == waits
            await pause(stage)
            async with asyncio.timeout(1.0):
                await until_state(stage, "node-0", "SingleNodeUpgrading")
                await until_resumed(stage, "node-0", "single-node-upgrade")
            assert await stage.until_ended() == SUCCEEDED
        assert await warnings(stage) == []


async def test_deleting_a_paused_plan_removes_everything() -> None:
    async with Simulation("three-nodes") as simulation:
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life():
            await stage.create_plan(pausing(FIRST))
            await until_state(stage, FIRST, "UpgradePaused")
            await simulation.client().delete(UPGRADE_PLANS, stage.name)
            await stage.until("deleted")
            await stage.settle()
        jobs = (await simulation.client().list(JOBS, namespace=PLACE)).items
        assert [objects.name(one) for one in jobs if objects.name(one).startswith("upgrade-")] == []
