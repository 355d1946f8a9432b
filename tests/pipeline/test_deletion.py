"""Plans that are deleted while they are at work: at once in every phase, and the next plan succeeds."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.pipeline.test_failures import ours, settings
from tests.support.upgrade import BY_VERSION, Stage, phases_of
from upgrade_manager.api.phases import PHASE_VALUES, SUCCEEDED
from upgrade_manager.kube import objects
from upgrade_manager.kube.kinds import NODES, PROVISIONING_CLUSTERS, UPGRADE_PLANS

if TYPE_CHECKING:
    from hack.simulation import Simulation
    from tests.support.simulate import Simulate

#: Seconds between two looks at a plan.
LOOK = 0.02
#: How far a node can be when its plan is deleted.
NODE_STATES = ["ImagePreloaded", "PreDraining", "PreDrained", "PostDraining", "WaitingReboot", "PostDrained"]


async def until_recorded(stage: Stage, phase: str) -> None:
    """Wait until the plan has reached the phase, if only to leave it at once."""
    async with asyncio.timeout(600):
        while phase not in phases_of(await stage.plan()):  # noqa: ASYNC110  # it looks from outside
            await asyncio.sleep(LOOK)


async def until_node(stage: Stage, state: str) -> None:
    """Wait until a node has reached the state in the node upgrade."""
    await until_recorded(stage, "NodeUpgrading")
    async with asyncio.timeout(600):
        while True:
            nodes = (objects.status(await stage.plan()).get("nodeUpgradeStatuses") or {}).values()
            if state in [entry["state"] for entry in nodes]:
                return
            await asyncio.sleep(LOOK)


async def delete(stage: Stage) -> None:
    """Delete the plan and see it go."""
    await stage.simulation.client().delete(UPGRADE_PLANS, stage.name)
    assert await stage.until("gone") == "gone"
    await stage.settle()


async def cordoned(simulation: Simulation) -> list[str]:
    """Nodes that take no new Pods."""
    nodes = (await simulation.client().list(NODES)).items
    return [objects.name(node) for node in nodes if objects.spec(node).get("unschedulable")]


async def generation(simulation: Simulation) -> Any:
    """What the Rancher cluster has."""
    local = await simulation.client().get(PROVISIONING_CLUSTERS, "local", namespace="fleet-local")
    return objects.spec(local)["rkeConfig"]["provisionGeneration"]


async def succeed(stage: Stage, *, before: list[Any]) -> None:
    """The next plan goes through as if there had been none before it."""
    following = replace(stage, name="next")
    was = await generation(stage.simulation)
    await following.create_plan(BY_VERSION)
    assert await following.until_ended() == SUCCEEDED
    await stage.settle()
    assert phases_of(await following.plan()) == [*PHASE_VALUES, SUCCEEDED]
    assert await generation(stage.simulation) == was + 1
    assert await settings(stage.simulation) == before
    assert await ours(stage.simulation, "next") == []
    assert await cordoned(stage.simulation) == []


@pytest.mark.parametrize("phase", PHASE_VALUES)
async def test_a_plan_deleted_in_any_phase_goes_leaves_nothing_and_hinders_nobody(
    simulate: Simulate, phase: str
) -> None:
    async with simulate() as simulation:
        before = await settings(simulation)
        stage = await Stage.set_up(simulation)
        async with stage.life():
            await stage.create_plan(BY_VERSION)
            await until_recorded(stage, phase)
            await delete(stage)
            assert await ours(simulation) == []
            assert await settings(simulation) == before
            await succeed(stage, before=before)


@pytest.mark.parametrize("state", NODE_STATES)
async def test_a_node_that_was_under_way_is_taken_through_by_the_next_plan(simulate: Simulate, state: str) -> None:
    async with simulate() as simulation:
        before = await settings(simulation)
        stage = await Stage.set_up(simulation)
        async with stage.life():
            await stage.create_plan(BY_VERSION)
            await until_node(stage, state)
            await delete(stage)
            stage.ledger.created.clear()
            await succeed(stage, before=before)
        jobs = sorted(name for path, name in stage.ledger.created if path.endswith("/jobs"))
        steps = [f"next-node-upgrade-{step}-node-{n}" for step in ("post-drain", "pre-drain") for n in range(3)]
        assert jobs == ["next-cluster-upgrade", *steps]
