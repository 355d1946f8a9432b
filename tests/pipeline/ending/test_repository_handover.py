"""The upgrade repository of a plan that ends while a Job runs: it stays until that Job is removed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.pipeline.ending.test_orphaned_jobs import ACTIVE, PLACE, SLOW, deleted_while_running, until_job
from tests.support.cluster.harvester import Harvester
from tests.support.cluster.simulate import RepairableScenario, Simulate
from tests.support.managers.upgrade import BY_IMAGE, SPECS, UpgradeRun, condition, started
from tests.support.programs.polling import eventually
from upgrade_manager.api.keys import JobType
from upgrade_manager.api.remedy import remedy_text
from upgrade_manager.blockers.known_wait import KnownWait, RemovedDeploymentWait, RemovedImageWait, RemovedServiceWait
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import DEPLOYMENTS, JOBS, NODES, SERVICES, VIRTUAL_MACHINE_IMAGES, Resource
from upgrade_manager.pipeline.context import ReconcileContext
from upgrade_manager.pipeline.ending import repository_handover
from upgrade_manager.pipeline.ending.cleanup import clean_up
from upgrade_manager.resources.iso_image import iso_image
from upgrade_manager.resources.jobs import node_job, restore_job
from upgrade_manager.resources.owner import owner_reference, plan_uid
from upgrade_manager.resources.repository import repository_deployment, repository_service

pytestmark = pytest.mark.full

KINDS = (DEPLOYMENTS, SERVICES, VIRTUAL_MACHINE_IMAGES)


async def repository(stage: UpgradeRun) -> dict[str, Object]:
    """Return by kind: the objects of the plan's repository and its image."""
    found = [(kind, (await stage.client.list(kind, namespace=PLACE)).items) for kind in KINDS]
    return {kind.kind: one for kind, items in found for one in items if objects.name(one).startswith("upgrade-")}


@pytest.mark.rule(
    "nodes: a Job that runs when its plan is deleted runs to its end, whatever the propagation policy",
    "nodes: a Job that runs when its plan is deleted keeps its labels",
    "nodes: the upgrade repository outlives a deleted plan until the Jobs that read from it are removed",
)
@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
@pytest.mark.servers
@pytest.mark.thin
async def test_running_job_survives_deletion_with_its_repository(
    simulate: Simulate, spec: dict[str, Any], propagation: str
) -> None:
    scenario = RepairableScenario.of(**SLOW)
    async with simulate(scenario) as simulation, started(simulation, spec) as stage:
        node, job = await deleted_while_running(stage, propagation)
        kept = await repository(stage)
        images = [] if spec == BY_IMAGE else ["VirtualMachineImage"]
        assert list(kept) == ["Deployment", "Service", *images]
        for one in kept.values():
            assert objects.metadata(one)["ownerReferences"] == [owner_reference(JOBS, job)]
            assert plan_uid(one) == plan_uid(job)
        orphan = await until_job(stage, objects.name(job), "succeeded")
        assert (objects.uid(orphan), objects.labels(orphan)) == (objects.uid(job), objects.labels(job))
        assert "ownerReferences" not in objects.metadata(orphan)
        assert objects.spec(orphan)["ttlSecondsAfterFinished"] == 3600
        await stage.settle()
        found = await stage.client.get(NODES, node)
        assert found["status"]["nodeInfo"]["osImage"] == f"Harvester {simulation.scenario.release.harvester}"
        assert await repository(stage) != {}
        await stage.client.delete(JOBS, objects.name(job), namespace=PLACE)

        async def is_removed() -> bool:
            return await repository(stage) == {}

        assert await eventually(is_removed, seconds=60.0)
        if spec == BY_IMAGE:
            await stage.client.get(VIRTUAL_MACHINE_IMAGES, spec["image"], namespace=PLACE)


@pytest.mark.rule("nodes: the next plan waits for the Jobs of a deleted plan, and names them")
async def test_next_plan_of_an_image_waits_for_the_repository(simulate: Simulate) -> None:
    async with simulate(RepairableScenario.of(**SLOW)) as simulation, started(simulation, BY_IMAGE) as stage:
        _, job = await deleted_while_running(stage)
        await stage.create_plan(BY_IMAGE)
        plan = await stage.until_plan(lambda plan: "that has ended still runs" in condition(plan, "Available")[2])
        assert f"Job {PLACE}/{objects.name(job)} of an UpgradePlan" in condition(plan, "Available")[2]
        assert "currentPhase" not in objects.status(plan)
        await stage.succeed()
        assert "ReconcileError" not in dict(await stage.warnings())
        assert await repository(stage) == {}


async def test_plan_of_another_name_does_not_wait_to_import(simulate: Simulate) -> None:
    async with simulate(RepairableScenario.of(**SLOW)) as simulation, started(simulation) as stage:
        await deleted_while_running(stage)
        following = replace(stage, name="next")
        await following.create_plan()
        await following.until("ImagePreloading")
        await following.succeed()
        assert await repository(stage) == {}


async def prepared(cluster: Harvester, *jobs: JobType, spec: Object | None = None) -> ReconcileContext:
    """Create a plan in its node upgrade with running Jobs and its repository."""
    ctx = cluster.context(await cluster.plan(spec=spec or {}, status={"currentPhase": "NodeUpgrading"}))
    for job_type in jobs:
        if job_type is JobType.RESTORE_VM:
            manifest = restore_job(ctx.owner, ctx.job_settings, node="n1")
        else:
            manifest = node_job(ctx.owner, ctx.job_settings, node="n1", job_type=job_type)
        await cluster.put(JOBS, manifest, status=ACTIVE)
    image = ctx.job_settings.image
    await cluster.put(DEPLOYMENTS, repository_deployment(ctx.owner, image=image, claim="c", replicas=2))
    await cluster.put(SERVICES, repository_service(ctx.owner))
    iso = iso_image(ctx.owner, version="v1", url="http://x", checksum="")
    await cluster.put(VIRTUAL_MACHINE_IMAGES, iso)
    return ctx


async def counts(cluster: Harvester) -> list[int]:
    return [len(await cluster.names(kind, PLACE)) for kind in KINDS]


@pytest.mark.parametrize(
    ("jobs", "spec", "kept"),
    [
        pytest.param([JobType.POST_DRAIN, JobType.PRE_DRAIN], {}, [1, 1, 1], id="two Jobs"),
        pytest.param([JobType.RESTORE_VM], {}, [0, 0, 0], id="a Job that does not read"),
        pytest.param([], {}, [0, 0, 0], id="without Jobs"),
    ],
)
async def test_repository_stays_for_jobs_that_read(
    cluster: Harvester, jobs: list[JobType], spec: Object, kept: list[int]
) -> None:
    ctx = await prepared(cluster, *jobs, spec=spec)
    for _ in range(2):
        await clean_up(ctx, keep_failed_jobs=False)
    # A later plan of the same name.
    later = cluster.context({**ctx.raw, "metadata": {**objects.metadata(ctx.raw), "uid": "later"}})
    await clean_up(later, keep_failed_jobs=False)
    assert await counts(cluster) == kept
    assert len(await cluster.names(JOBS, PLACE)) == len(jobs)


async def test_image_of_the_spec_is_not_handed_over(cluster: Harvester) -> None:
    ctx = await prepared(cluster, JobType.POST_DRAIN, spec={"image": "up-iso"})
    await clean_up(ctx, keep_failed_jobs=False)
    image = await cluster.find(VIRTUAL_MACHINE_IMAGES, "up-iso", PLACE)
    assert "ownerReferences" not in objects.metadata(image)
    assert await counts(cluster) == [1, 1, 1]


@pytest.mark.parametrize(("status", "reason"), [(403, "Forbidden"), (409, "Conflict")])
@pytest.mark.thin
async def test_jobs_run_on_if_the_repository_is_refused(simulate: Simulate, status: int, reason: str) -> None:
    async with simulate(RepairableScenario.of(**SLOW)) as simulation, started(simulation) as stage:
        stage.refuse("patch", "services", status=status, reason=reason)
        _, job = await deleted_while_running(stage)
        await until_job(stage, objects.name(job), "succeeded")
        assert list(await repository(stage)) == ["Deployment", "Service", "VirtualMachineImage"]
        assert "ownerReferences" not in objects.metadata((await repository(stage))["Service"])


@pytest.mark.rule("blockers: objects of a plan that has ended are named if they are not removed")
@pytest.mark.parametrize(
    ("resource", "manifest", "kind"),
    [
        pytest.param(SERVICES, {"spec": {}}, RemovedServiceWait, id="Service"),
        pytest.param(DEPLOYMENTS, {"spec": {}}, RemovedDeploymentWait, id="Deployment"),
        pytest.param(
            VIRTUAL_MACHINE_IMAGES,
            {"spec": {"displayName": "left", "sourceType": "download"}},
            RemovedImageWait,
            id="image",
        ),
    ],
)
async def test_object_that_is_not_removed_is_a_wait(
    cluster: Harvester, resource: Resource, manifest: Object, kind: type[KnownWait]
) -> None:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "deleted", "uid": "deleted"}
    metadata = {"name": "left", "namespace": PLACE, "ownerReferences": [owner], "finalizers": ["example.com/held"]}
    await cluster.put(resource, {"metadata": metadata, **manifest})
    ctx = cluster.context(await cluster.plan())
    kinds = {"apiVersion": resource.api_version, "kind": resource.kind}
    own = {**kinds, "metadata": {"name": "left", "namespace": PLACE}, **manifest}
    found = await repository_handover.ensure(ctx, resource, own)
    assert found is not None
    (wait,) = found.waits
    assert (type(wait), wait.name) == (kind, "left")
    assert isinstance(wait, kind)
    assert remedy_text(wait.remedies) == f"Delete it: kubectl delete {resource.name} -n {PLACE} left"
    await cluster.client.delete(resource, "left", namespace=PLACE)
    found = await repository_handover.ensure(ctx, resource, own)
    assert found is not None
    (wait,) = found.waits
    assert wait.detail.endswith("it is being deleted, and its finalizer example.com/held holds it")
