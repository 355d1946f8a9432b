"""Plans in each of the states that other tools judge, as the manager writes them in a simulated cluster."""

from __future__ import annotations

from hack import scenario as scenarios
from hack.simulation import Simulation
from tests.blockers.test_stalls import close, is_stalled
from tests.pipeline.test_failures import FAILURES
from tests.pipeline.test_unfit_clusters import TOOLKIT
from tests.support.cluster.holdings import HOLDINGS
from tests.support.managers.begun_while_paused import holds
from tests.support.managers.upgrade import UpgradeRun, started
from upgrade_manager.api.keys import HARVESTER_SYSTEM
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import UPGRADE_PLANS, VIRTUAL_MACHINE_IMAGES

#: Of a controller that keeps the deleted plan.
KEEPER = "example.com/keep"


async def plans_by_state() -> dict[str, Object]:
    """Return a plan in each state, by the name of the state."""
    plans = {**await _of_success(), **await _of_failure(), **await _of_attempts()}
    return {**plans, "refused": await _refused(), "queued": await _queued(), "paused": await _paused()}


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


async def _paused() -> Object:
    async with Simulation() as simulation, started(simulation) as stage:
        await stage.until("ISODownloading")
        await stage.patch(spec={"paused": True})
        return await stage.until_plan(holds)


async def _of_attempts() -> dict[str, Object]:
    """Return plans that have failed, and whose next attempt has not begun."""
    plans = {}
    scenario = scenarios.load("three-nodes").changed(**FAILURES["the second node cannot be drained"].faults)
    async with Simulation(scenario) as simulation, started(simulation) as stage:
        await stage.fail()
        await stage.patch(spec={"attempt": 2, "paused": True})
        plans["attempt paused"] = await stage.until_plan(holds)
        await HOLDINGS["a built-in upgrade"].begin(simulation)
        await stage.patch(spec={"paused": None})
        plans["attempt queued"] = await stage.until_plan(lambda plan: "queuedSince" in objects.status(plan))
        name = objects.text(plans["attempt queued"], "status", "isoImageID")
        await stage.client.delete(VIRTUAL_MACHINE_IMAGES, name, namespace=HARVESTER_SYSTEM)
        await HOLDINGS["a built-in upgrade"].finish(simulation)
        plans["attempt refused"] = await stage.until_plan(_is_refused)
    return plans


def _is_refused(plan: Object) -> bool:
    return objects.condition(plan, "Progressing").get("reason") == "Refused"
