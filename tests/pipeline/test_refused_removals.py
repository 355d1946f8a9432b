"""Webhooks that refuse to let the manager remove its objects: neither a plan nor the next one waits for them.

An ended plan that loses its finalizer meanwhile is cleaned up all the same.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial

import pytest

from hack import scenario as scenarios
from hack.simulation import Simulation
from tests.pipeline.test_active_label import marks
from tests.support.cluster.cluster_state import created_objects
from tests.support.cluster.simulate import RepairableScenario, Simulate, fault
from tests.support.managers.upgrade import REAL_LOOK, REFUSAL, UpgradeRun, started
from tests.support.programs.polling import eventually
from upgrade_manager.api.keys import ANNOTATION_PENDING_OS_IMAGE, FINALIZER
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import JOBS, NODES, UPGRADE_PLANS

pytestmark = pytest.mark.full


async def is_refusal_reported(stage: UpgradeRun) -> bool:
    return REFUSAL in str(await stage.warnings())


@pytest.mark.rule(
    "pipeline: a refused removal does not keep a plan that is deleted, nor one that has ended",
    "api: at most one plan has the label active",
)
@pytest.mark.servers
@pytest.mark.parametrize(
    ("end", "status", "reason"),
    [
        ("success", 403, "Forbidden"),
        ("success", 409, "Conflict"),
        ("deletion", 403, "Forbidden"),
        ("deletion", 409, "Conflict"),
    ],
)
@pytest.mark.thin
@pytest.mark.real_full
async def test_refused_removal_blocks_nothing(simulate: Simulate, end: str, status: int, reason: str) -> None:
    async with simulate() as simulation, started(simulation) as stage:
        allow = stage.refuse("deletecollection", "services", status=status, reason=reason)
        if end == "deletion":
            # No Job runs that would keep the Service.
            await stage.until_recorded("ImagePreloading")
            await stage.delete()
        else:
            assert await stage.until_ended() == "Succeeded"
            assert marks(await stage.plan()) == (True, True)
        await eventually(partial(is_refusal_reported, stage), seconds=60, pause=REAL_LOOK)
        following = replace(stage, name="next")
        await following.create_plan({"version": "v1.8.0", "force": True})
        assert await following.until("ISODownloading", "Failed") == "ISODownloading"
        if end == "success":
            assert marks(await following.plan()) == (True, True)
            assert marks(await stage.plan()) == (True, False)
        allow()
        await following.succeed()
        assert await created_objects(simulation) == []
        if end == "success":
            assert marks(await stage.plan()) == (False, False)


@pytest.mark.rule("nodes: a Job that runs when its plan is deleted runs to its end, whatever the propagation policy")
async def test_refused_orphaning_keeps_neither_plan_nor_job() -> None:
    scenario = scenarios.load("three-nodes").changed(durations={"post_drain": 60})
    async with Simulation(scenario) as simulation, started(simulation) as stage:
        await stage.until_node("PostDraining", node="node-1")
        stage.refuse("patch", "jobs.batch")
        await stage.client.delete(UPGRADE_PLANS, stage.name)
        assert await stage.until("deleted") == "deleted"
        await asyncio.sleep(20)
        job = await stage.client.get(JOBS, "upgrade-node-upgrade-post-drain-node-1", namespace="harvester-system")
        assert objects.status(job)["active"] == 1
        assert not objects.is_deleting(job)


@pytest.mark.rule("pipeline: an ended plan that loses its finalizer during its clean-up is cleaned up all the same")
async def test_clean_up_continues_without_the_finalizer(simulate: Simulate) -> None:
    async with simulate() as simulation, started(simulation) as stage:
        allow = stage.refuse("deletecollection", "services")
        assert await stage.until_ended() == "Succeeded"
        await stage.settle()
        await stage.patch(metadata={"finalizers": None})
        await stage.settle()
        allow()
        await asyncio.sleep(60)
        assert await created_objects(simulation) == []


#: The kinds of what stays for the next attempt, and the failed Job.
KEPT = {"Job", "VirtualMachineImage", "Deployment", "Service", "EndpointSlice"}


@pytest.mark.rule("pipeline: an ended plan that loses its finalizer during its clean-up is cleaned up all the same")
@pytest.mark.parametrize("fails", [True, False], ids=["failed", "succeeded"])
async def test_clean_up_continues_after_replace_and_restart(simulate: Simulate, *, fails: bool) -> None:
    scenario = RepairableScenario.of(**(fault("manifests") if fails else {}))
    async with simulate(scenario) as simulation:
        stage = await UpgradeRun.set_up(simulation)
        allow = stage.refuse("deletecollection", "plans.upgrade.*" if fails else "services")
        async with stage.life() as first:
            await stage.create_plan()
            await stage.until_ended()
            await asyncio.sleep(10)
            await first.kill()
        assert objects.status(await stage.plan())["cleanupPending"]
        await stage.patch(metadata={"finalizers": None, "annotations": None})
        allow()
        assert await created_objects(simulation) != []
        async with stage.life(seed="successor"):
            await asyncio.sleep(60)
            left = await created_objects(simulation)
            assert {name.split()[0] for name in left} == (KEPT if fails else set())
            plan = await stage.plan()
            assert "cleanupPending" not in objects.status(plan)
            assert FINALIZER not in objects.finalizers(plan)


@pytest.mark.rule("pipeline: a refused removal after the end does not hold up the next plan")
async def test_refused_removal_leaves_the_next_plan_alone() -> None:
    scenario = RepairableScenario.of(durations={"reboot": 40}, **fault("post-drain", "node-1"))
    async with Simulation(scenario) as simulation, started(simulation) as stage:
        await stage.until_recorded("NodeUpgrading")
        allow = stage.refuse("deletecollection", "services")
        await stage.until_ended()
        await asyncio.sleep(30)
        scenario.repair()
        following = replace(stage, name="second")
        await following.create_plan()
        await following.until_node("WaitingReboot", node="node-1")
        node = await stage.client.get(NODES, "node-1")
        assert ANNOTATION_PENDING_OS_IMAGE in objects.annotations_of(node)
        allow()
        assert await following.until_ended() == "Succeeded"
