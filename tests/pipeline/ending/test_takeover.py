"""Plans that an earlier version began, which tied its objects to them by ownerReferences alone."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from hack.simulation import Simulation
from tests.pipeline.ending.test_orphaned_jobs import SLOW, post_draining
from tests.support.cluster.cluster_state import created_objects, overridden_settings
from tests.support.cluster.harvester import Harvester
from tests.support.cluster.simulate import RepairableScenario, Simulate
from tests.support.managers.earlier_snapshots import Earlier, leave
from tests.support.managers.earlier_version import EarlierVersion
from tests.support.managers.sweep import every_second
from tests.support.managers.upgrade import BY_VERSION, Ledger, UpgradeRun, condition
from tests.support.programs.polling import eventually
from upgrade_manager.api.keys import LABEL_ACTIVE, LABEL_COMPONENT, LABEL_PLAN_UID, Component, JobType
from upgrade_manager.api.phases import PHASE_VALUES, TERMINAL
from upgrade_manager.facts.drain_hooks import has_hooks
from upgrade_manager.kube import objects
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.errors import Forbidden, PreconditionFailed
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    JOBS,
    PROVISIONING_CLUSTERS,
    SECRETS,
    SERVICES,
    SUC_PLANS,
    VIRTUAL_MACHINE_IMAGES,
    Resource,
)
from upgrade_manager.pipeline.context import ReconcileContext
from upgrade_manager.pipeline.ending.cleanup import clean_up
from upgrade_manager.pipeline.ending.failed_jobs import remove_ttl
from upgrade_manager.pipeline.ending.takeover import take_over
from upgrade_manager.resources.image_list import ImageList
from upgrade_manager.resources.iso_image import iso_image
from upgrade_manager.resources.jobs import cluster_upgrade_job, node_job, restore_job
from upgrade_manager.resources.owner import Owner
from upgrade_manager.resources.repository import repository_deployment, repository_service
from upgrade_manager.resources.suc_plan import image_cleanup_plan, image_preload_plan

PLACE, SUC_PLACE = "harvester-system", "cattle-system"
RUNNING: Object = {"active": 1, "ready": 1}
COMPLETE: Object = {"conditions": [{"type": "Complete", "status": "True"}], "succeeded": 1}
FAILED: Object = {"conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}], "failed": 3}


def former(ctx: ReconcileContext, manifest: Object) -> Object:
    """Return the manifest as the earlier version made it."""
    labels = {key: value for key, value in objects.labels(manifest).items() if key != LABEL_PLAN_UID}
    metadata = {**objects.metadata(manifest), "labels": labels, "ownerReferences": [ctx.owner.reference()]}
    spec = objects.spec(manifest)
    if "template" in spec:
        spec = {**spec, "template": {**spec["template"], "metadata": {"labels": labels}}}
    return {**manifest, "metadata": metadata, **({"spec": spec} if spec else {})}


async def begun(
    cluster: Harvester, *, phase: str = "NodeUpgrading", deleting: bool = False, **spec: Any
) -> ReconcileContext:
    """Create a plan in that phase with an object of each kind, as the earlier version left it."""
    plan = await cluster.plan(spec={"version": "v1", **spec}, status={"currentPhase": phase})
    ctx = cluster.context(plan)
    owner, jobs, image = ctx.owner, ctx.job_settings, ctx.job_settings.image
    lists = ImageList(owner=owner, packed=b"x")
    for resource, manifest, status in (
        (VIRTUAL_MACHINE_IMAGES, iso_image(owner, version="v1", url="http://x", checksum=""), None),
        (DEPLOYMENTS, repository_deployment(owner, image=image, claim="c", replicas=2), None),
        (SERVICES, repository_service(owner), None),
        (SUC_PLANS, image_preload_plan(owner, ctx.plan_settings, concurrency=1), None),
        (SUC_PLANS, image_cleanup_plan(owner, ctx.plan_settings, secrets=lists.names()), None),
        *[(SECRETS, secret, None) for secret in lists.secrets()],
        (JOBS, cluster_upgrade_job(owner, jobs), COMPLETE),
        (JOBS, node_job(owner, jobs, node="n1", job_type=JobType.PRE_DRAIN), FAILED),
        (JOBS, node_job(owner, jobs, node="n1", job_type=JobType.POST_DRAIN), RUNNING),
        (JOBS, node_job(owner, jobs, node="n2", job_type=JobType.POST_DRAIN), None),
        (JOBS, node_job(owner, jobs, node="n3", job_type=JobType.PRE_DRAIN, suspended=True), None),
        (JOBS, restore_job(owner, jobs, node="n4"), RUNNING),
    ):
        await cluster.put(resource, former(ctx, manifest), status=status)
    if deleting:
        ctx.raw = {**plan, "metadata": {**objects.metadata(plan), "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    return ctx


#: By kind and name: whether the object gets the label, and whether it keeps the ownerReference.
EXPECTED = {
    "VirtualMachineImage up-iso": (True, False),
    "Deployment up-repo": (True, False),
    "Service up-repo": (True, False),
    "Plan up-image-cleanup": (False, True),
    "Plan up-image-preload": (False, True),
    "Job up-cluster-upgrade": (True, True),
    "Job up-node-upgrade-post-drain-n1": (True, False),
    "Job up-node-upgrade-post-drain-n2": (True, False),
    "Job up-node-upgrade-pre-drain-n1": (True, True),
    "Job up-node-upgrade-pre-drain-n3": (True, True),
    "Job up-node-upgrade-restore-vm-n4": (True, False),
}


async def owned(cluster: Harvester, uid: str) -> dict[str, tuple[bool, bool]]:
    """Return by kind and name: whether the object has the label, and whether the plan controls it."""
    found = {}
    for resource in (VIRTUAL_MACHINE_IMAGES, DEPLOYMENTS, SERVICES, SUC_PLANS, JOBS):
        for one in (await cluster.client.list(resource)).items:
            is_labeled = objects.labels(one).get(LABEL_PLAN_UID) == uid
            found[f"{resource.kind} {objects.name(one)}"] = (is_labeled, objects.owner_uid(one) == uid)
    return found


@pytest.mark.rule(
    "nodes: a plan that an earlier version began is taken over in any phase",
    "nodes: SUC Plans of an earlier version and their Jobs are not changed",
)
async def test_objects_are_taken_over_by_kind_and_state(cluster: Harvester) -> None:
    ctx = await begun(cluster)
    before = (await cluster.client.list(SUC_PLANS)).items
    await take_over(ctx)
    assert await owned(cluster, ctx.owner.uid) == EXPECTED
    assert (await cluster.client.list(SUC_PLANS)).items == before
    assert ctx.owner.has_unlabeled
    written = len(ctx.writes)
    ctx.informers.is_taken_over = False
    await take_over(ctx)
    assert len(ctx.writes) == written == 9


async def test_objects_of_another_owner_are_not_taken_over(cluster: Harvester) -> None:
    ctx = cluster.context(await cluster.plan())
    service = former(ctx, repository_service(ctx.owner))
    service["metadata"]["ownerReferences"] = [Owner(name="up", uid="earlier").reference()]
    before = await cluster.put(SERVICES, service)
    await take_over(ctx)
    assert await cluster.find(SERVICES, "up-repo", PLACE) == before
    assert not ctx.owner.has_unlabeled


@pytest.mark.parametrize("taken_over", [True, False], ids=["after a retry", "in the same process"])
async def test_clean_up_removes_unlabeled_objects(cluster: Harvester, *, taken_over: bool) -> None:
    ctx = await begun(cluster)
    await take_over(ctx)
    await clean_up(ctx, keep_failed_jobs=False)
    if taken_over:
        # Another process.
        ctx.informers.has_unlabeled = ctx.informers.is_taken_over = False
        await take_over(ctx)
        await clean_up(ctx, keep_failed_jobs=False)
    assert await cluster.names(SUC_PLANS, SUC_PLACE) == await cluster.names(SECRETS, SUC_PLACE) == []
    names = ["post-drain-n1", "restore-vm-n4"]
    assert await cluster.names(JOBS, PLACE) == [f"up-node-upgrade-{name}" for name in names]
    # The running Jobs read them.
    assert await cluster.names(SERVICES, PLACE) == await cluster.names(DEPLOYMENTS, PLACE) == ["up-repo"]


#: Of a webhook, for the object of that name.
def refusing(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    patch = Client.patch

    async def refuse(self: Client, resource: Resource, name: str, *given: Any, **options: Any) -> Any:
        if name in names:
            raise Forbidden(f"{name} must not change")
        return await patch(self, resource, name, *given, **options)

    monkeypatch.setattr(Client, "patch", refuse)


@pytest.mark.parametrize(
    ("name", "deleting", "is_raised"),
    [
        pytest.param("up-repo", True, False, id="repository of a deleted plan"),
        pytest.param("up-repo", False, True, id="repository"),
        pytest.param("up-cluster-upgrade", True, False, id="finished Job of a deleted plan"),
        pytest.param("up-node-upgrade-post-drain-n1", True, True, id="running Job of a deleted plan"),
    ],
)
async def test_refusal_keeps_a_deleted_plan_only_for_a_running_job(
    cluster: Harvester, monkeypatch: pytest.MonkeyPatch, name: str, *, deleting: bool, is_raised: bool
) -> None:
    ctx = await begun(cluster, deleting=deleting)
    refusing(monkeypatch, name)
    if is_raised:
        with pytest.raises(Forbidden):
            await take_over(ctx)
    else:
        await take_over(ctx)
    assert ctx.informers.is_taken_over is not is_raised
    expected = {title: (title.partition(" ")[2] != name and has, ref) for title, (has, ref) in EXPECTED.items()}
    found = await owned(cluster, ctx.owner.uid)
    assert {title: has for title, (has, _) in found.items()} == {title: has for title, (has, _) in expected.items()}


async def test_object_created_after_the_takeover_is_taken_over_next(cluster: Harvester) -> None:
    ctx = cluster.context(await cluster.plan())
    await take_over(ctx)
    await cluster.put(SERVICES, former(ctx, repository_service(ctx.owner)))
    with pytest.raises(PreconditionFailed, match="Service up-repo is not taken over"):
        await ctx.ensure(SERVICES, repository_service(ctx.owner))
    await take_over(ctx)
    await ctx.ensure(SERVICES, repository_service(ctx.owner))
    assert objects.labels(await cluster.find(SERVICES, "up-repo", PLACE))[LABEL_PLAN_UID] == ctx.owner.uid


async def test_plan_that_stays_unlabeled_is_not_taken_over_again(cluster: Harvester) -> None:
    ctx = await begun(cluster)
    await take_over(ctx)
    await ctx.ensure(SUC_PLANS, image_preload_plan(ctx.owner, ctx.plan_settings, concurrency=1))
    assert ctx.informers.is_taken_over


@pytest.mark.parametrize("deleting", [True, False])
async def test_list_of_vms_loses_its_owner(
    cluster: Harvester, monkeypatch: pytest.MonkeyPatch, *, deleting: bool
) -> None:
    ctx = await begun(cluster, deleting=deleting, restoreVM=True)
    owners = [ctx.owner.reference()]
    metadata = {"name": "up-restore-vm", "namespace": PLACE, "ownerReferences": owners}
    await cluster.put(CONFIG_MAPS, {"metadata": metadata, "data": {"n1": "default/db"}})
    with monkeypatch.context() as refused:
        refusing(refused, "up-restore-vm")
        await take_over(ctx)
    ctx.informers.is_taken_over = False
    await take_over(ctx)
    found = await cluster.find(CONFIG_MAPS, "up-restore-vm", PLACE)
    assert objects.labels(found) == ctx.owner.labels(Component.NODE_UPGRADE)
    assert "ownerReferences" not in objects.metadata(found)


async def began(
    simulation: Simulation, spec: dict[str, Any], point: str, *, manager: Earlier = Earlier.ORIGINALS
) -> UpgradeRun:
    """Run an earlier manager until the plan reaches a phase value or a node's state, and end it.

    Policies of this version would refuse its objects, which have no label: it acts as an administrator.
    """
    stage = await UpgradeRun.set_up(simulation)
    cluster = await stage.client.get(PROVISIONING_CLUSTERS, "local", namespace="fleet-local")
    earlier = replace(stage, ledger=Ledger(EarlierVersion(simulation.transport())))
    async with earlier.life() as life:
        await earlier.create_plan(spec)
        await earlier.reach(point)
        await life.kill()
    await leave(stage, manager, cluster)
    return stage


async def suc_objects(stage: UpgradeRun) -> dict[str, Any]:
    """Return labels and generation of the Plans that the earlier version created."""
    plans = (await stage.client.list(SUC_PLANS, namespace=SUC_PLACE)).items
    return {objects.uid(one): (objects.labels(one), objects.metadata(one)["generation"]) for one in plans}


async def is_taken_over(stage: UpgradeRun) -> bool:
    """Return True if the plan is labeled or has ended, and no own object in use lacks the label."""
    kinds = (JOBS, DEPLOYMENTS, SERVICES, VIRTUAL_MACHINE_IMAGES)
    found = [one for kind in kinds for one in (await stage.client.list(kind, namespace=PLACE)).items]
    unlabeled = [one for one in found if objects.owner_uid(one) and LABEL_PLAN_UID not in objects.labels(one)]
    plan = await stage.plan()
    is_labeled = LABEL_ACTIVE in objects.labels(plan) or objects.status(plan)["currentPhase"] in TERMINAL
    return is_labeled and not unlabeled


STATES = ["PreDraining", "PreDrained", "PostDraining", "WaitingReboot", "PostDrained"]
#: From the begin of the node upgrade on, managers differ in what they have recorded.
#: CleanedUp is recorded together with the success.
LATER = [*STATES, "NodeUpgrading", "NodeUpgraded", "CleaningUp"]
SAMPLE = [(Earlier.ANNOTATIONS, "PreDraining"), (Earlier.ANNOTATIONS, "CleaningUp"), (Earlier.GO, "WaitingReboot")]


@pytest.mark.rule(
    "nodes: a plan that an earlier version began is taken over in any phase",
    "nodes: SUC Plans of an earlier version and their Jobs are not changed",
)
@pytest.mark.servers
@pytest.mark.parametrize("point", [*PHASE_VALUES, *STATES])
@pytest.mark.thin
async def test_plan_is_taken_over_and_succeeds(simulate: Simulate, point: str) -> None:
    async with simulate() as simulation:
        stage = await began(simulation, BY_VERSION, point)
        before = await suc_objects(stage)
        async with stage.life(seed="successor"):
            assert await eventually(partial(is_taken_over, stage), seconds=60)
            after = await suc_objects(stage)
            assert [uid for uid in before.keys() & after.keys() if after[uid] != before[uid]] == []
            await stage.succeed()
        assert await created_objects(simulation) == []
        # No Job of the earlier version runs twice.
        created = stage.ledger.names("jobs")
        assert [name for name in created if name.startswith("upgrade-") and created.count(name) > 1] == []


@pytest.mark.full
@pytest.mark.rule("nodes: what an earlier manager recorded of its changes is read into the ledger")
@pytest.mark.servers
@pytest.mark.thin
@pytest.mark.parametrize(
    ("manager", "point"),
    [
        pytest.param(*run, id=", ".join(run), marks=[] if run in SAMPLE else every_second(row + column))
        for row, manager in enumerate((Earlier.ANNOTATIONS, Earlier.GO))
        for column, point in enumerate(LATER)
        for run in [(manager, point)]
    ],
)
async def test_plan_of_each_manager_ends_as_its_own(simulate: Simulate, manager: Earlier, point: str) -> None:
    async with simulate(RepairableScenario.of(toolkit_writes_methods=True)) as simulation:
        before = await overridden_settings(simulation)
        stage = await began(simulation, BY_VERSION, point, manager=manager)
        async with stage.life(seed="successor"):
            await stage.succeed()
        plan, after = await stage.plan(), await overridden_settings(simulation)
        warned = [event["message"] for event in await stage.events() if event["reason"] == "SettingNotRestored"]
        message = condition(plan, "Progressing")[2]
    assert objects.status(plan)["ledger"] == []
    if manager is Earlier.GO and "upgradeStrategy is" in message:
        # That manager has not recorded the strategy, of which only its hooks are known.
        assert len(warned) == 1
        assert warned[0] in message
        assert not has_hooks(after[2])
        before[2] = after[2]
    else:
        # Before its first node the settings may be unchanged, so that this version records them.
        assert warned == []
        assert manager is Earlier.ANNOTATIONS or point == "NodeUpgrading"
    assert after == before


@pytest.mark.full
@pytest.mark.rule("nodes: a Job that runs when its plan is deleted runs to its end, whatever the propagation policy")
@pytest.mark.servers
async def test_running_job_of_an_earlier_version_survives(simulate: Simulate) -> None:
    async with simulate(RepairableScenario.of(**SLOW)) as simulation:
        stage = await began(simulation, BY_VERSION, "PostDraining")
        node, job = await post_draining(stage)
        host = simulation.hosts.of(node)

        async def has_rebooted() -> bool:
            return host.boots == 1

        async with stage.life(seed="successor"):
            assert await eventually(partial(is_taken_over, stage), seconds=60)
            await stage.delete("Foreground")
            # A Job that ends before the plan is removed goes with the plan's other leftovers.
            assert await eventually(has_rebooted, seconds=900)
        assert objects.name(job) not in stage.ledger.names("jobs")


async def put_kept_job(cluster: Harvester, ctx: ReconcileContext) -> None:
    """Create a failed Job of the image preload, as the earlier version kept it."""
    manifest = former(ctx, node_job(ctx.owner, ctx.job_settings, node="n9", job_type=JobType.PRE_DRAIN))
    manifest["metadata"] |= {"name": "apply", "namespace": SUC_PLACE}
    manifest["metadata"]["labels"] |= {LABEL_COMPONENT: Component.IMAGE_PRELOAD.value}
    await cluster.put(JOBS, manifest, status=FAILED)


async def test_kept_jobs_are_removed_with_a_failed_plan(cluster: Harvester) -> None:
    ctx = await begun(cluster, phase="Failed", deleting=True)
    await put_kept_job(cluster, ctx)
    await take_over(ctx)
    await clean_up(ctx, keep_failed_jobs=False)
    assert await cluster.names(JOBS, SUC_PLACE) == []


async def test_kept_jobs_are_found_after_their_plan_is_removed(cluster: Harvester) -> None:
    """The process ended after the removal of the Plan, before that of the Jobs' TTL."""
    ctx = await begun(cluster)
    await put_kept_job(cluster, ctx)
    await cluster.client.delete_collection(SUC_PLANS, namespace=SUC_PLACE)
    await take_over(ctx)
    await remove_ttl(ctx, Component.IMAGE_PRELOAD)
    found = await cluster.find(JOBS, "apply", SUC_PLACE)
    assert "ttlSecondsAfterFinished" not in objects.spec(found)
    assert LABEL_PLAN_UID not in objects.labels(found)
