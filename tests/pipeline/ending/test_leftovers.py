"""Objects that no longer have a plan, and labels that an earlier Plan of the same name has left on the nodes."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any
from unittest.mock import AsyncMock

import pytest

from hack.actors import suc_plan
from tests.pipeline.ending.test_orphaned_jobs import ACTIVE, COMPLETE, FAILED, post_draining, until_job
from tests.pipeline.ending.test_repository_handover import repository
from tests.support.cluster.cluster_state import created_objects
from tests.support.cluster.harvester import Harvester
from tests.support.cluster.simulate import RepairableScenario, Simulate
from tests.support.managers.upgrade import UpgradeRun, started
from tests.support.programs.polling import eventually
from upgrade_manager.api.keys import JobType
from upgrade_manager.kube import objects
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.errors import Conflict, Forbidden, Transient
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    EVENTS,
    JOBS,
    NODES,
    SERVICES,
    VIRTUAL_MACHINE_IMAGES,
    Resource,
)
from upgrade_manager.pipeline.ending.leftovers import KEY, Leftovers
from upgrade_manager.resources.iso_image import iso_image
from upgrade_manager.resources.jobs import JobSettings, node_job
from upgrade_manager.resources.owner import Owner, owner_reference
from upgrade_manager.resources.repository import repository_deployment, repository_service
from upgrade_manager.resources.restore_list import restore_list
from upgrade_manager.resources.toolkit import ToolkitImage
from upgrade_manager.runtime.result import Done, ReconcileTimeout
from upgrade_manager.runtime.time_limit import RECONCILE_TIMEOUT

PLACE = "harvester-system"
IMAGE = ToolkitImage(repository="r", tag="t")
SETTINGS = JobSettings(image=IMAGE, service_account="a")
#: Objects that the Jobs of a plan read.
READ = (DEPLOYMENTS, SERVICES, VIRTUAL_MACHINE_IMAGES, CONFIG_MAPS)
DELETED = Owner(name="old", uid="deleted")


async def put_all(cluster: Harvester, owner: Owner, *jobs: tuple[Object | None, bool]) -> None:
    """Create a plan's Jobs, each with a status and suspended or not, and what they read."""
    for number, (status, suspended) in enumerate(jobs):
        manifest = node_job(owner, SETTINGS, node=f"n{number}", job_type=JobType.POST_DRAIN, suspended=suspended)
        manifest["metadata"].pop("ownerReferences", None)
        await cluster.put(JOBS, manifest, status=status)
    await cluster.put(DEPLOYMENTS, repository_deployment(owner, image=IMAGE, claim="c", replicas=2))
    await cluster.put(SERVICES, repository_service(owner))
    await cluster.put(VIRTUAL_MACHINE_IMAGES, iso_image(owner, version="v1", url="http://x", checksum=""))
    plan = {"metadata": {"name": owner.name, "uid": owner.uid}}
    await cluster.put(CONFIG_MAPS, restore_list(plan, node="n0", machines=["default/db"]))


async def left(cluster: Harvester) -> dict[str, list[str]]:
    return {kind.kind: await cluster.names(kind, PLACE) for kind in (JOBS, *READ)}


async def owners(cluster: Harvester, kind: Resource) -> list[Any]:
    found = (await cluster.client.list(kind, namespace=PLACE)).items
    return [objects.metadata(one).get("ownerReferences") for one in found]


@pytest.mark.rule(
    "pipeline: a new leader removes objects whose plan does not exist, and so does each deletion of a plan"
)
async def test_objects_without_a_plan_are_removed(cluster: Harvester) -> None:
    await put_all(cluster, DELETED, (COMPLETE, False), (FAILED, False), (None, True))
    assert await Leftovers(cluster.client).reconcile(KEY) == Done()
    assert await left(cluster) == {kind.kind: [] for kind in (JOBS, *READ)}


@pytest.mark.rule("pipeline: what the running Jobs of a plan read stays after its deletion, until they are removed")
@pytest.mark.parametrize("status", [ACTIVE, {"failed": 1}], ids=["running", "between two attempts"])
async def test_running_job_keeps_what_it_reads(cluster: Harvester, status: Object) -> None:
    await put_all(cluster, DELETED, (status, False), (COMPLETE, False))
    for _ in range(2):
        await Leftovers(cluster.client).reconcile(KEY)
    (job,) = (await cluster.client.list(JOBS, namespace=PLACE)).items
    assert objects.name(job) == "old-node-upgrade-post-drain-n0"
    assert objects.spec(job)["ttlSecondsAfterFinished"] == 3600
    for kind in READ:
        assert await owners(cluster, kind) == [[owner_reference(JOBS, job)]]
    await cluster.finish(JOBS, objects.name(job), PLACE, COMPLETE)
    await Leftovers(cluster.client).reconcile(KEY)
    assert await left(cluster) == {kind.kind: [] for kind in (JOBS, *READ)}


@pytest.mark.rule("pipeline: objects of a plan that exists are never removed as leftovers")
@pytest.mark.parametrize("status", [{}, {"currentPhase": "NodeUpgrading"}, {"currentPhase": "Failed"}])
async def test_objects_of_an_existing_plan_stay(cluster: Harvester, status: Object) -> None:
    plan = await cluster.plan(status=status)
    owner = Owner(name="up", uid=objects.uid(plan))
    await put_all(cluster, owner, (COMPLETE, False), (FAILED, False), (None, True), (ACTIVE, False))
    before = await left(cluster)
    await Leftovers(cluster.client).reconcile(KEY)
    assert await left(cluster) == before


@pytest.mark.rule("pipeline: objects of a plan that exists are never removed as leftovers")
async def test_plan_created_meanwhile_keeps_its_objects(cluster: Harvester, monkeypatch: pytest.MonkeyPatch) -> None:
    listing = Client.list
    made: list[Object] = []

    async def create_after_the_first_list(self: Client, resource: Resource, **options: Any) -> Any:
        result = await listing(self, resource, **options)
        if not made:
            made.append(await cluster.plan())
            await cluster.put(SERVICES, repository_service(Owner(name="up", uid=objects.uid(made[0]))))
        return result

    monkeypatch.setattr(Client, "list", create_after_the_first_list)
    await Leftovers(cluster.client).reconcile(KEY)
    assert await cluster.names(SERVICES, PLACE) == ["up-repo"]


async def test_objects_of_others_stay(cluster: Harvester) -> None:
    metadata = {"name": "x", "namespace": PLACE, "labels": {"management.harvesterhci.io/upgrade-plan": "old"}}
    await cluster.put(SERVICES, {"metadata": metadata, "spec": {"ports": [{"port": 80}]}})
    await Leftovers(cluster.client).reconcile(KEY)
    assert await cluster.names(SERVICES, PLACE) == ["x"]


def die_at(monkeypatch: pytest.MonkeyPatch, number: int, *, after: bool) -> None:
    """End the process before or after that write of the client: no further one is sent."""
    writes = 0

    def deadly(write: Any) -> Any:
        async def send(*given: Any, **options: Any) -> Any:
            nonlocal writes
            writes += 1
            if writes > number or (writes == number and not after):
                raise Transient("killed")
            result = await write(*given, **options)
            if writes >= number:
                raise Transient("killed")
            return result

        return send

    for verb in ("patch", "delete", "delete_collection"):
        monkeypatch.setattr(Client, verb, deadly(getattr(Client, verb)))


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("number", range(1, 13))
async def test_removal_survives_a_death_at_each_write(
    cluster: Harvester, monkeypatch: pytest.MonkeyPatch, number: int, *, after: bool
) -> None:
    await put_all(cluster, DELETED, (COMPLETE, False), (None, True))
    await put_all(cluster, Owner(name="older", uid="running"), (ACTIVE, False), (COMPLETE, False))
    with monkeypatch.context() as deadly:
        die_at(deadly, number, after=after)
        with pytest.raises(Transient):
            await Leftovers(cluster.client).reconcile(KEY)
    await Leftovers(cluster.client).reconcile(KEY)
    assert await left(cluster) == {
        "Job": ["older-node-upgrade-post-drain-n0"],
        "Deployment": ["older-repo"],
        "Service": ["older-repo"],
        "VirtualMachineImage": ["older-iso"],
        "ConfigMap": ["older-restore-vm"],
    }
    (job,) = (await cluster.client.list(JOBS, namespace=PLACE)).items
    assert [await owners(cluster, kind) for kind in READ] == [[[owner_reference(JOBS, job)]]] * len(READ)


async def test_replaced_job_is_not_removed(cluster: Harvester, monkeypatch: pytest.MonkeyPatch) -> None:
    await put_all(cluster, DELETED, (COMPLETE, False))
    deletion = Client.delete

    async def replace_first(self: Client, resource: Resource, name: str, **options: Any) -> None:
        if resource == JOBS:
            await deletion(self, JOBS, name, namespace=PLACE)
            await cluster.put(JOBS, node_job(DELETED, SETTINGS, node="n0", job_type=JobType.POST_DRAIN))
        await deletion(self, resource, name, **options)

    monkeypatch.setattr(Client, "delete", replace_first)
    await Leftovers(cluster.client).reconcile(KEY)
    assert await cluster.names(JOBS, PLACE) == ["old-node-upgrade-post-drain-n0"]


async def test_slow_api_server_is_a_timeout(cluster: Harvester, monkeypatch: pytest.MonkeyPatch) -> None:
    async def hang(*_: Any, **__: Any) -> None:
        await asyncio.sleep(RECONCILE_TIMEOUT + 1)

    monkeypatch.setattr(Client, "list", hang)
    with pytest.raises(ReconcileTimeout, match="timed out after 48 s"):
        await Leftovers(cluster.client).reconcile(KEY)


async def test_refusal_is_raised_after_all_others_are_removed(
    cluster: Harvester, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put_all(cluster, DELETED, (COMPLETE, False))
    collection = Client.delete_collection

    async def refuse(self: Client, resource: Resource, **options: Any) -> None:
        if resource == SERVICES:
            raise Forbidden("a webhook's")
        await collection(self, resource, **options)

    monkeypatch.setattr(Client, "delete_collection", refuse)
    with pytest.raises(Forbidden):
        await Leftovers(cluster.client).reconcile(KEY)
    assert await left(cluster) == {**{kind.kind: [] for kind in (JOBS, *READ)}, "Service": ["old-repo"]}


async def test_conflict_of_a_webhook_is_an_error(cluster: Harvester, monkeypatch: pytest.MonkeyPatch) -> None:
    await put_all(cluster, DELETED, (COMPLETE, False))
    monkeypatch.setattr(Client, "delete", AsyncMock(side_effect=Conflict("a webhook's")))
    with pytest.raises(Conflict, match="a webhook's"):
        await Leftovers(cluster.client).reconcile(KEY)


async def is_empty(stage: UpgradeRun) -> bool:
    return await created_objects(stage.simulation) == []


@pytest.mark.full
@pytest.mark.rule(
    "pipeline: a new leader removes objects whose plan does not exist, and so does each deletion of a plan",
    "pipeline: what the running Jobs of a plan read stays after its deletion, until they are removed",
)
@pytest.mark.servers
async def test_forced_deletion_leaves_the_running_job_alone(simulate: Simulate) -> None:
    # The new leader starts while the Pod runs, also on a busy machine.
    async with simulate(RepairableScenario.of(durations={"post_drain": 500})) as simulation:
        stage = await UpgradeRun.abandoned(simulation, "PostDraining")
        _, job = await post_draining(stage)
        await stage.patch(metadata={"finalizers": None})
        await stage.delete("Foreground")
        async with stage.life(seed="successor"):
            await until_job(stage, objects.name(job), "succeeded")
            assert list(await repository(stage)) == ["Deployment", "Service", "VirtualMachineImage"]
            await stage.client.delete(JOBS, objects.name(job), namespace=PLACE)
            assert await eventually(partial(is_empty, stage), seconds=60.0)


@pytest.mark.full
@pytest.mark.rule(
    "pipeline: a new leader removes objects whose plan does not exist, and so does each deletion of a plan"
)
async def test_refused_removal_is_retried(simulate: Simulate) -> None:
    async with simulate() as simulation:
        stage = await UpgradeRun.abandoned(simulation, "ImagePreloading")
        await stage.patch(metadata={"finalizers": None})
        await stage.delete()
        allow = stage.refuse("deletecollection", "services")
        async with stage.life(seed="successor"):
            await stage.settle()
            assert "Service harvester-system/upgrade-repo" in await created_objects(simulation)
            allow()
            assert await eventually(partial(is_empty, stage), seconds=600.0)


PLANS = ("upgrade-image-preload", "upgrade-image-cleanup")


@pytest.mark.full
@pytest.mark.rule("workloads: labels of an earlier Plan of the same name are removed before a Plan is created")
@pytest.mark.servers
async def test_labels_of_an_earlier_plan_skip_no_node(simulate: Simulate) -> None:
    """They are the very marks that this upgrade's Plans will set: same name, version and account."""
    spec = {"version": "v1.8.0", "serviceAccountName": "system-upgrade-controller"}
    mark = suc_plan.hash_of({"spec": spec}, "v1.8.0")
    async with simulate("three-nodes") as simulation:
        client = simulation.client()
        nodes = [objects.name(node) for node in (await client.list(NODES)).items]
        labels = {f"plan.upgrade.cattle.io/{plan}": mark for plan in PLANS}
        for node in nodes:
            await client.patch(NODES, node, MergePatch({"metadata": {"labels": labels}}))
        async with started(simulation) as stage:
            await stage.succeed()
        events = (await client.list(EVENTS)).items
        left = [key for node in (await client.list(NODES)).items for key in objects.labels(node)]
    found = {(event["involvedObject"]["name"], event["reason"], event.get("message", "")) for event in events}
    for plan in PLANS:
        done = {f"Job completed on Node {node}" for node in nodes}
        assert done <= {message for name, reason, message in found if (name, reason) == (plan, "JobComplete")}
        synced = [message for name, reason, message in found if (name, reason) == (plan, "SyncJob")]
        assert synced
        assert all(message.endswith(f"Hash: {mark}") for message in synced), "the marks were not those of these Plans"
    assert not any(key.startswith("plan.upgrade.cattle.io/") for key in left)
