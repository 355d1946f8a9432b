"""A node that the system-upgrade-controller selects again although its Job is complete."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from hack.scenario import UpgradeController, load
from hack.simulation import Simulation
from tests.support.cluster.simulate import Simulate
from tests.support.managers.upgrade import BY_VERSION, UpgradeRun
from tests.support.programs.polling import eventually
from upgrade_manager.api.keys import CATTLE_SYSTEM, suc_node_label
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import JOBS, NODES, SUC_PLANS

PLAN = {
    "apiVersion": SUC_PLANS.api_version,
    "kind": SUC_PLANS.kind,
    "metadata": {"name": "work", "namespace": CATTLE_SYSTEM},
    "spec": {
        "concurrency": 3,
        "version": "v1.8.0",
        "serviceAccountName": "system-upgrade-controller",
        "nodeSelector": {"matchLabels": {"harvesterhci.io/managed": "true"}},
        "upgrade": {"image": "rancher/harvester-upgrade-toolkit", "command": ["true"]},
    },
}
#: Seconds in which a controller would have replaced the Job.
LONG = 3.0
#: Seconds after which Jobs expire.
TTL = 20


async def complete_reason(simulation: Simulation) -> str:
    plan = await simulation.client().get(SUC_PLANS, "work", namespace=CATTLE_SYSTEM)
    return str(objects.condition(plan, "Complete").get("reason"))


async def jobs(simulation: Simulation) -> dict[str, Object]:
    """Return the Jobs by uid."""
    found = (await simulation.client().list(JOBS, namespace=CATTLE_SYSTEM)).items
    return {objects.uid(job): job for job in found}


@pytest.mark.servers
async def test_controller_does_not_repeat_a_complete_job(simulate: Simulate) -> None:
    """The node gets its label back only when the Job expires."""
    scenario = load("three-nodes").model_copy(update={"upgrade_controller": UpgradeController(ttl=TTL)})
    async with simulate(scenario) as simulation:
        client, label = simulation.client(), suc_node_label("work")

        async def has(reason: str) -> bool:
            return await complete_reason(simulation) == reason

        await client.create(SUC_PLANS, PLAN)
        await eventually(partial(has, "Complete"))
        # A Job that changes later would let the controller label the node again.
        await asyncio.sleep(LONG)
        before = await jobs(simulation)
        await client.patch(NODES, "node-1", MergePatch({"metadata": {"labels": {label: None}}}))
        await eventually(partial(has, "SyncJob"))
        await asyncio.sleep(LONG)
        plan = await client.get(SUC_PLANS, "work", namespace=CATTLE_SYSTEM)
        assert objects.status(plan)["applying"] == ["node-1"]
        assert await jobs(simulation) == before
        assert label not in objects.labels(await client.get(NODES, "node-1"))
        await eventually(partial(has, "Complete"), seconds=2 * TTL)
        assert label in objects.labels(await client.get(NODES, "node-1"))
        assert (await jobs(simulation)).keys() <= before.keys()


@pytest.mark.full
@pytest.mark.servers
@pytest.mark.rule("pipeline: a node that loses its SUC Plan's label while other nodes run gets its Job again")
async def test_node_without_its_label_gets_its_job_again(simulate: Simulate) -> None:
    """A user removes it, or the Node object is created again, before the controller has served the other nodes."""
    async with simulate() as simulation:
        stage = await UpgradeRun.set_up(simulation)
        label = suc_node_label(f"{stage.name}-image-preload")

        async def first_labelled() -> str:
            nodes = (await stage.client.list(NODES)).items
            return next((objects.name(node) for node in nodes if label in objects.labels(node)), "")

        async with stage.life():
            await stage.create_plan(BY_VERSION | {"imagePreloadOption": {"concurrency": 1}})
            node = await eventually(first_labelled)
            await stage.client.patch(NODES, node, MergePatch({"metadata": {"labels": {label: None}}}))
            await stage.succeed()
        plans = ["image-preload", "image-preload", "skip-on", "skip-off", "image-cleanup"]
        assert stage.ledger.names("plans") == [f"{stage.name}-{plan}" for plan in plans]
