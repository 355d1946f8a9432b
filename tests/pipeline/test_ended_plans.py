"""Plans that lose their finalizer after their end, while objects of the upgrade are left."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from hack.faults.rules import Match, Refuse, Rule
from hack.simulation import Simulation
from tests.support.cluster.cluster_state import created_objects
from tests.support.cluster.simulate import RepairableScenario, fault
from tests.support.managers.upgrade import UpgradeRun, started
from upgrade_manager.api.keys import ANNOTATION_PENDING_OS_IMAGE, FINALIZER
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import NODES

if TYPE_CHECKING:
    from tests.support.cluster.simulate import Simulate

pytestmark = pytest.mark.sampled


@pytest.mark.rule("pipeline: an ended plan that loses its finalizer during its clean-up is cleaned up all the same")
async def test_clean_up_continues_without_the_finalizer(simulate: Simulate) -> None:
    async with simulate() as simulation, started(simulation) as stage:
        refusal = Refuse(status=403, reason="Forbidden", message="a webhook refuses the removal")
        rule = Rule(match=Match(verbs=("deletecollection",), resource="services"), action=refusal)
        simulation.middleware.add(rule)
        assert await stage.until_ended() == "Succeeded"
        await stage.settle()
        await stage.patch(metadata={"finalizers": None})
        await stage.settle()
        simulation.middleware.remove(rule)
        await asyncio.sleep(60)
        assert await created_objects(simulation) == []


@pytest.mark.rule("pipeline: an ended plan that loses its finalizer during its clean-up is cleaned up all the same")
@pytest.mark.parametrize("fails", [True, False], ids=["failed", "succeeded"])
async def test_clean_up_continues_after_replace_and_restart(simulate: Simulate, *, fails: bool) -> None:
    scenario = RepairableScenario.of(**(fault("manifests") if fails else {}))
    async with simulate(scenario) as simulation:
        stage = await UpgradeRun.set_up(simulation)
        refusal = Refuse(status=403, reason="Forbidden", message="a webhook refuses the removal")
        rule = Rule(match=Match(verbs=("deletecollection",), resource="services"), action=refusal)
        simulation.middleware.add(rule)
        async with stage.life() as first:
            await stage.create_plan()
            await stage.until_ended()
            await stage.settle()
            await first.kill()
        await stage.patch(metadata={"finalizers": None, "annotations": None})
        simulation.middleware.remove(rule)
        assert await created_objects(simulation) != []
        async with stage.life(seed="successor"):
            await asyncio.sleep(60)
            left = await created_objects(simulation)
            assert [name for name in left if not name.startswith("Job ")] == []
            plan = await stage.plan()
            assert "cleanupPending" not in objects.status(plan)
            assert FINALIZER not in objects.finalizers(plan)


@pytest.mark.rule("pipeline: a refused removal after the end does not hold up the next plan")
async def test_refused_removal_leaves_the_next_plan_alone() -> None:
    scenario = RepairableScenario.of(durations={"reboot": 40}, **fault("post-drain", "node-1"))
    async with Simulation(scenario) as simulation, started(simulation) as stage:
        await stage.until_recorded("NodeUpgrading")
        refusal = Refuse(status=403, reason="Forbidden", message="a webhook refuses the removal")
        rule = Rule(match=Match(verbs=("deletecollection",), resource="services"), action=refusal)
        simulation.middleware.add(rule)
        await stage.until_ended()
        await asyncio.sleep(30)
        scenario.repair()
        following = replace(stage, name="second")
        await following.create_plan()
        await following.until_node("WaitingReboot", node="node-1")
        node = await stage.client.get(NODES, "node-1")
        assert ANNOTATION_PENDING_OS_IMAGE in objects.annotations_of(node)
        simulation.middleware.remove(rule)
        assert await following.until_ended() == "Succeeded"
