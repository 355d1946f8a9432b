"""Plans in each of the states that other tools judge, as the manager writes them in a simulated cluster."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

from hack import scenario as scenarios
from hack.simulation import Simulation
from tests.blockers.test_stalls import close, is_stalled
from tests.pipeline.test_failures import FAILURES
from tests.pipeline.test_unfit_clusters import TOOLKIT
from tests.support.managers.upgrade import UpgradeRun, started
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import UPGRADE_PLANS
from upgrade_manager.pipeline.status import StatusPatch

NOW = datetime(2026, 1, 1, tzinfo=UTC)
#: Of a controller that keeps the deleted plan.
KEEPER = "example.com/keep"


async def plans_by_state() -> dict[str, Object]:
    """Return a plan in each state, by the name of the state."""
    plans = {**await _of_success(), **await _of_failure(), "refused": await _refused(), "queued": await _queued()}
    return {**plans, "paused": _paused(plans["running"])}


async def _of_success() -> dict[str, Object]:
    plans = {}
    async with Simulation() as simulation:
        stage = await UpgradeRun.set_up(simulation)
        plans["new"] = await stage.create_plan()
        async with stage.life():
            await stage.until("ClusterUpgrading")
            plans["running"] = await stage.plan()
            await close(stage, on=True)
            plans["stalled"] = await stage.until_plan(is_stalled)
            await close(stage, on=False)
            await stage.until("CleaningUp")
            plans["cleaning up"] = await stage.plan()
            # A webhook keeps the objects of the upgrade.
            accept = stage.refuse("deletecollection", "deployments.apps")
            plans["removal refused"] = await stage.until_plan(_is_removal_refused)
            accept()
            plans["succeeded"] = await stage.succeed()
            plans["spec that no manager has seen"] = _changed(plans["succeeded"])
            plans["deleting"] = await _deleting(stage)
        await stage.patch(metadata={"finalizers": None})
    return plans


def _is_removal_refused(plan: Object) -> bool:
    return objects.status(plan)["currentPhase"] == "Succeeded" and is_stalled(plan)


async def _of_failure() -> dict[str, Object]:
    plans = {}
    faults = FAILURES["the second node cannot be drained"].faults
    scenario = scenarios.load("three-nodes").changed(**faults)
    async with Simulation(scenario) as simulation, started(simulation) as stage:
        plans["failed"] = await stage.fail()
        await stage.patch(spec={"nodeUpgradeOption": {"pauseNodes": ["node-2"]}})
        plans["spec changed after the end"] = await stage.until_plan(_is_observed)
        plans["deleting after a failure"] = await _deleting(stage)
        await stage.patch(metadata={"finalizers": None})
    return plans


def _changed(plan: Object) -> Object:
    """Return the plan with a spec that its manager has not seen."""
    return {**plan, "metadata": {**plan["metadata"], "generation": plan["metadata"]["generation"] + 1}}


def _is_observed(plan: Object) -> bool:
    return bool(objects.status(plan)["observedGeneration"] == objects.metadata(plan)["generation"])


async def _deleting(stage: UpgradeRun) -> Object:
    await stage.patch(metadata={"finalizers": [KEEPER]})
    await stage.client.delete(UPGRADE_PLANS, stage.name)
    return await stage.until_plan(lambda plan: objects.status(plan)["display"]["state"] == "Deleting")


async def _refused() -> Object:
    async with Simulation() as simulation, started(simulation, annotations={TOOLKIT: "me/my toolkit"}) as stage:
        return await stage.fail()


async def _queued() -> Object:
    async with Simulation() as simulation, started(simulation) as stage:
        await stage.until("ISODownloading")
        second = UpgradeRun(simulation=simulation, name="second", ledger=stage.ledger, repository=simulation.repository)
        await second.create_plan()
        await second.until_decided()
        return await second.plan()


def _paused(running: Object) -> Object:
    """Return the plan as the contract has it for a pause, which no manager writes yet."""
    paused = _condition("Paused", "True", "PausedByUser", "Paused by ada since 03:20, before node-2")
    status = objects.status(running)
    return _summarized(running, {**status, "conditions": [*status["conditions"], paused]})


def _condition(type_: str, status: str, reason: str, message: str) -> dict[str, Any]:
    time = "2026-01-01T00:00:00Z"
    return {"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": time}


def _summarized(plan: Object, status: Object) -> Object:
    """Return the plan with that status, and the fields that the manager derives from it."""
    result = {**copy.deepcopy(plan), "status": status}
    patch = StatusPatch(result, now=lambda: NOW)
    patch.summarize()
    fields = ("conditions", "display", "observedGeneration")
    return {**result, "status": {**status, **{field: patch[field] for field in fields}}}
