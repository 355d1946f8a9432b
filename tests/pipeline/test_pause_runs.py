"""Whole upgrades with paused and resumed nodes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hack.simulation import Simulation
from tests.support.cluster.simulate import Simulate
from tests.support.managers.announcements import milestone_errors, milestones, without_milestones
from tests.support.managers.upgrade import BY_VERSION, UpgradeRun, condition, node_states, started
from upgrade_manager.api.attribution import signed
from upgrade_manager.api.keys import ANNOTATION_LAST_CHANGED_BY
from upgrade_manager.api.phases import PHASES
from upgrade_manager.api.spec import UpgradePlanSpec
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import JOBS, PODS

pytestmark = pytest.mark.full

PLACE = "harvester-system"
LIST = "spec.nodeUpgradeOption.pauseNodes"
#: Rancher's order.
FIRST, SECOND, THIRD = "node-0", "node-2", "node-1"


def pausing(*nodes: str) -> dict[str, Any]:
    return {**BY_VERSION, "nodeUpgradeOption": {"pauseNodes": list(nodes)}}


async def pause(stage: UpgradeRun, *nodes: str) -> None:
    await stage.patch(spec={"nodeUpgradeOption": {"pauseNodes": list(nodes)}})


async def job(stage: UpgradeRun, node: str, step: str = "pre-drain") -> Object:
    return await stage.client.get(JOBS, f"upgrade-node-upgrade-{step}-{node}", namespace=PLACE)


async def is_suspended(stage: UpgradeRun, node: str, step: str = "pre-drain") -> bool:
    return bool(objects.spec(await job(stage, node, step)).get("suspend"))


async def assert_resumes(stage: UpgradeRun, node: str, state: str, step: str = "pre-drain") -> None:
    """Clear the list, and check that state and Job resume within a second."""
    await pause(stage)
    async with asyncio.timeout(1.0):
        await until_state(stage, node, state)
        # The state is recorded before the Job is resumed.
        while await is_suspended(stage, node, step):  # noqa: ASYNC110  # not an event
            await asyncio.sleep(0.02)


async def until_state(stage: UpgradeRun, node: str, state: str) -> Object:
    return await stage.until_plan(lambda plan: node_states(plan).get(node) == state, seconds=240)


@pytest.mark.rule(
    "api: nodes in pauseNodes are held in UpgradePaused before they are drained",
    "nodes: the patch that resumes a paused node's Job removes its ownerReference",
    "nodes: removing the name from the list resumes the node within a second",
    "nodes: the Progressing message names paused nodes",
)
@pytest.mark.servers
@pytest.mark.real_full
async def test_listed_node_pauses_and_resumes_within_a_second(simulate: Simulate) -> None:
    async with simulate("three-nodes") as simulation, started(simulation, pausing(SECOND)) as stage:
        await until_state(stage, SECOND, "UpgradePaused")
        await stage.settle()
        plan = await stage.plan()
        waits = f"{SECOND} is paused (cordoned); remove it from {LIST} to continue (1 of 3 nodes done)"
        assert condition(plan, "Progressing") == ("True", "NodeUpgrading", waits)
        # Rancher upgrades one node at a time: the others wait for the paused one.
        assert node_states(plan) == {FIRST: "PostDrained", SECOND: "UpgradePaused", THIRD: "ImagePreloaded"}
        assert await is_suspended(stage, SECOND)
        held = objects.uid(await job(stage, SECOND))
        assert objects.owner_uid(await job(stage, SECOND)) == objects.uid(plan)
        pods = (await stage.client.list(PODS, namespace=PLACE)).items
        assert [pod for pod in pods if objects.owner_uid(pod) == held] == []
        await assert_resumes(stage, SECOND, "PreDraining")
        assert objects.uid(await job(stage, SECOND)) == held
        assert "ownerReferences" not in objects.metadata(await job(stage, SECOND))
        await stage.succeed()
        assert await stage.warnings() == []
        events = await stage.events()
        assert len(without_milestones(events)) == 2 * len(PHASES) + 1
        assert milestone_errors(events, node_states(await stage.plan()), single=False) == []
        paused = [one for one in milestones(events) if one.startswith(("NodePaused", "NodeResumed"))]
        assert paused == [f"NodePaused Node {SECOND}", f"NodeResumed Node {SECOND}"]
        assert stage.ledger.conflicts == []


def changed_by(user: str, *nodes: str) -> dict[str, str]:
    """Return the annotations that the mutating webhook sets for a pause list."""
    return {ANNOTATION_LAST_CHANGED_BY: signed(user, UpgradePlanSpec.read(pausing(*nodes)), {})}


@pytest.mark.rule("nodes: events name the user who paused or resumed a node, if that is recorded")
async def test_events_name_the_user_of_the_last_change() -> None:
    user = "alice\n" + "a" * 500
    recorded = changed_by(user, SECOND)
    async with (
        Simulation("three-nodes") as simulation,
        started(simulation, pausing(SECOND), annotations=recorded) as run,
    ):
        await until_state(run, SECOND, "UpgradePaused")
        await run.settle()
        # The webhook is down.
        await pause(run)
        await until_state(run, SECOND, "PostDraining")
        events = {event["reason"]: event["message"] for event in await run.events() if SECOND in event["message"]}
    assert events["NodePaused"].endswith(f"to continue (last change of the plan: alice {'a' * 94}…)")
    assert events["NodeResumed"].endswith(" (last change of the plan: not recorded)")
    assert "last change" not in events["NodeDraining"]


@pytest.mark.rule("nodes: a listed node without pending hook is not paused yet")
async def test_listed_nodes_pause_in_turn_and_unknown_ones_are_ignored() -> None:
    left, unknown = [FIRST, SECOND, THIRD], "pauseNodes lists unknown node node-7; ignored"
    async with Simulation("three-nodes") as simulation, started(simulation, pausing(*left, "node-7")) as stage:
        while left:
            plan = await until_state(stage, left[0], "UpgradePaused")
            assert [node for node, state in node_states(plan).items() if state == "UpgradePaused"] == [left[0]]
            await stage.settle()
            assert await stage.phase() == "NodeUpgrading"
            assert condition(await stage.plan(), "Progressing")[2].endswith(f"; {unknown}")
            await pause(stage, *left[1:], "node-7")
            del left[0]
        await stage.succeed()
        assert await stage.warnings() == [("PauseNodesUnknown", unknown)]


@pytest.mark.rule("nodes: a listed node becomes UpgradePaused with a suspended Job when its hook is pending")
async def test_single_node_pauses() -> None:
    async with Simulation("one-node") as simulation, started(simulation, pausing("node-0")) as stage:
        await until_state(stage, "node-0", "UpgradePaused")
        await stage.settle()
        assert await is_suspended(stage, "node-0", "single-node-upgrade")
        waits = f"node-0 is paused; remove it from {LIST} to continue (0 of 1 nodes done)"
        assert condition(await stage.plan(), "Progressing")[2] == waits
        await assert_resumes(stage, "node-0", "SingleNodeUpgrading", "single-node-upgrade")
        await stage.succeed()
        assert await stage.warnings() == []
