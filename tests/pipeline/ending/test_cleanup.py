"""The objects that remain after success, failure and deletion; every clean-up is repeated."""

from __future__ import annotations

from collections import Counter
from typing import Any
from unittest.mock import AsyncMock

import pytest

from tests.pipeline.ending.test_failed_jobs import put_failed_job
from tests.support.cluster.harvester import Harvester
from upgrade_manager.api.keys import Component, JobType
from upgrade_manager.api.phases import PHASE_VALUES
from upgrade_manager.facts.drain_hooks import has_hooks
from upgrade_manager.kube import objects
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.errors import Transient
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import (
    ADDONS,
    DEPLOYMENTS,
    JOBS,
    NODES,
    PROVISIONING_CLUSTERS,
    SECRETS,
    SERVICES,
    SUC_PLANS,
    UPGRADE_PLANS,
    VIRTUAL_MACHINE_IMAGES,
    Resource,
)
from upgrade_manager.pipeline.context import ReconcileContext
from upgrade_manager.pipeline.ending.cleanup import clean_up
from upgrade_manager.pipeline.selections import MANAGED_NODES
from upgrade_manager.pipeline.settings.giving_back import give_back
from upgrade_manager.pipeline.settings.upgrade_strategy import with_hooks
from upgrade_manager.resources.image_list import ImageList
from upgrade_manager.resources.iso_image import iso_image
from upgrade_manager.resources.jobs import JobSettings, cluster_upgrade_job, node_job
from upgrade_manager.resources.owner import Owner, owner_reference
from upgrade_manager.resources.repository import repository_deployment, repository_service
from upgrade_manager.resources.suc_plan import PlanSettings, image_cleanup_plan, image_preload_plan
from upgrade_manager.resources.toolkit import ToolkitImage

IMAGE = ToolkitImage(repository="r", tag="v1")
JOB, PLAN = JobSettings(image=IMAGE, service_account="a"), PlanSettings(image=IMAGE, service_account="a")
FAILED = {"conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}], "failed": 3}
KINDS = {
    "Deployment": (DEPLOYMENTS, "harvester-system"),
    "Service": (SERVICES, "harvester-system"),
    "VirtualMachineImage": (VIRTUAL_MACHINE_IMAGES, "harvester-system"),
    "Job": (JOBS, "harvester-system"),
    "Plan": (SUC_PLANS, "cattle-system"),
    "Secret": (SECRETS, "cattle-system"),
}
MARKS = {"plan.upgrade.cattle.io/up-image-preload": "h", "plan.upgrade.cattle.io/up-image-cleanup": "h"}


async def everything(
    cluster: Harvester, name: str = "up", *, reached: str = "CleanedUp", failed: str = ""
) -> ReconcileContext:
    """Create all objects of a plan that reached that phase; `failed` names its failed Job."""
    phases = PHASE_VALUES[: PHASE_VALUES.index(reached) + 1]
    entries = [{"phase": value, "phaseTransitionTimestamp": "2026-01-01T00:00:00Z"} for value in phases]
    plan = await cluster.plan(name, status={"currentPhase": reached, "phaseTransitionTimestamps": entries})
    owner = Owner(name=name, uid=objects.uid(plan))
    images = ImageList(owner=owner, packed=b"x")
    jobs = [cluster_upgrade_job(owner, JOB), node_job(owner, JOB, node="n1", job_type=JobType.PRE_DRAIN)]
    for resource, manifest in (
        (VIRTUAL_MACHINE_IMAGES, iso_image(owner, version="v1", url="https://x", checksum="ab" * 64)),
        (DEPLOYMENTS, repository_deployment(owner, image=IMAGE, claim="c", replicas=1)),
        (SERVICES, repository_service(owner)),
        (SUC_PLANS, image_preload_plan(owner, PLAN, concurrency=1)),
        (SUC_PLANS, image_cleanup_plan(owner, PLAN, secrets=images.names())),
        *((SECRETS, secret) for secret in images.secrets()),
        *((JOBS, job) for job in jobs),
    ):
        status = FAILED if failed and objects.name(manifest) == failed else None
        await cluster.put(resource, manifest, status=status)
    return cluster.context(plan)


#: The objects that a new attempt reads again.
PAYLOAD = {"Deployment": ["up-repo"], "Service": ["up-repo"], "VirtualMachineImage": ["up-iso"]}


async def left(cluster: Harvester) -> dict[str, list[str]]:
    found = {kind: await cluster.names(resource, place) for kind, (resource, place) in KINDS.items()}
    return {kind: names for kind, names in found.items() if names}


@pytest.mark.rule(
    "pipeline: Succeeded removes the repository, the image that the manager created, Plans and Jobs",
    "pipeline: cleanup may be interrupted and repeated",
    "pipeline: missing objects do not block deletion",
    "workloads: cleanup removes the system-upgrade-controller's labels from the nodes",
)
async def test_success_removes_everything(cluster: Harvester) -> None:
    await cluster.nodes("n1", **MARKS)
    ctx = await everything(cluster)
    for _ in range(2):
        await clean_up(ctx, keep_failed_jobs=False)
    assert await left(cluster) == {}
    node = await cluster.find(NODES, "n1")
    assert objects.labels(node) == {"harvesterhci.io/managed": "true", "kubernetes.io/hostname": "n1"}


async def test_label_that_the_cache_lacks_is_removed(cluster: Harvester, monkeypatch: pytest.MonkeyPatch) -> None:
    await cluster.nodes("n1")
    ctx = await everything(cluster)
    old = await ctx.watch(MANAGED_NODES)
    await cluster.client.patch(NODES, "n1", MergePatch({"metadata": {"labels": MARKS}}))
    monkeypatch.setattr(ctx.informers, "watch", AsyncMock(return_value=old))
    await clean_up(ctx, keep_failed_jobs=False)
    assert MARKS.keys().isdisjoint(objects.labels(await cluster.find(NODES, "n1")))


@pytest.mark.rule("pipeline: labels of a deleted plan that a webhook kept on nodes are removed at the next plan's end")
async def test_labels_of_deleted_plans_are_removed(cluster: Harvester) -> None:
    plan = await cluster.plan(status={"currentPhase": "Succeeded"})
    await cluster.plan("other")
    await cluster.put(SUC_PLANS, image_preload_plan(Owner(name="users", uid="u"), PLAN, concurrency=1))
    prefix = "plan.upgrade.cattle.io"
    kept = {f"{prefix}/{name}": "h" for name in ("other-image-preload", "users-image-preload", "users-plan")}
    await cluster.nodes(
        "n1", **{f"{prefix}/deleted-image-preload": "h", f"{prefix}/deleted-image-cleanup": "h", **kept}
    )
    await clean_up(cluster.context(plan), keep_failed_jobs=False)
    labels = objects.labels(await cluster.find(NODES, "n1"))
    assert {key for key in labels if key.startswith(prefix)} == set(kept)


@pytest.mark.rule("pipeline: an image that spec.image names is never removed")
async def test_other_plans_and_a_users_image_stay(cluster: Harvester) -> None:
    await cluster.nodes("n1", **{"plan.upgrade.cattle.io/other-image-preload": "h"})
    await everything(cluster, "other")
    before = await left(cluster)
    spec = {"sourceType": "upload", "displayName": "d", "backend": "cdi", "retry": 0, "url": "", "checksum": ""}
    await cluster.put(
        VIRTUAL_MACHINE_IMAGES, {"metadata": {"name": "users", "namespace": "harvester-system"}, "spec": spec}
    )
    await clean_up(await everything(cluster), keep_failed_jobs=False)
    after = await left(cluster)
    assert after.pop("VirtualMachineImage") == [*before.pop("VirtualMachineImage"), "users"]
    assert after == before
    assert "plan.upgrade.cattle.io/other-image-preload" in objects.labels(await cluster.find(NODES, "n1"))


@pytest.mark.rule("pipeline: an image that spec.image names is never removed")
@pytest.mark.parametrize("keep_failed_jobs", [True, False])
async def test_image_that_the_plan_names_stays(cluster: Harvester, *, keep_failed_jobs: bool) -> None:
    plan = await cluster.plan(spec={"image": "users"}, status={"currentPhase": "CleanedUp", "isoImageID": "users"})
    image = iso_image(Owner(name="up", uid="copied"), version="v1", url="https://x", checksum="ab" * 64)
    image["metadata"] |= {"name": "users", "ownerReferences": []}
    await cluster.put(VIRTUAL_MACHINE_IMAGES, image)
    await clean_up(cluster.context(plan), keep_failed_jobs=keep_failed_jobs)
    assert await left(cluster) == {"VirtualMachineImage": ["users"]}


@pytest.mark.rule(
    "pipeline: Failed keeps the failed Job and its Pods until the plan succeeds or is deleted",
    "pipeline: Failed removes everything else",
    "workloads: cleanup removes the system-upgrade-controller's labels from the nodes",
)
@pytest.mark.parametrize(
    ("phase", "failed"),
    [
        pytest.param("ISODownloading", "", id="nothing of a failed download"),
        pytest.param("ImagePreloading", "", id="a Plan without a failed Job"),
        pytest.param("ClusterUpgrading", "up-cluster-upgrade", id="the cluster's Job"),
        pytest.param("NodeUpgrading", "up-node-upgrade-pre-drain-n1", id="the node's Job, not those that succeeded"),
    ],
)
async def test_failure_keeps_failed_jobs_until_deletion(cluster: Harvester, phase: str, failed: str) -> None:
    await cluster.nodes("n1", **MARKS)
    ctx = await everything(cluster, reached=phase, failed=failed)
    ctx.status.fail("because", cause="because", todo="Correct it")
    for _ in range(2):
        await clean_up(ctx, keep_failed_jobs=True)
    payload = {} if phase == "ISODownloading" else PAYLOAD
    assert await left(cluster) == payload | ({"Job": [failed]} if failed else {})
    assert MARKS.keys().isdisjoint(objects.labels(await cluster.find(NODES, "n1")))
    await clean_up(ctx, keep_failed_jobs=False)
    assert await left(cluster) == {}


async def changed(cluster: Harvester, ctx: ReconcileContext) -> None:
    """Set up the middle of a node upgrade, with recorded originals, as version 0.1 recorded them."""
    rke = {"provisionGeneration": 5, "upgradeStrategy": with_hooks({})}
    spec = {"kubernetesVersion": "v1", "rkeConfig": rke}
    await cluster.put(PROVISIONING_CLUSTERS, {"metadata": {"name": "local", "namespace": "fleet-local"}, "spec": spec})
    addon = {"enabled": False, "repo": "r", "chart": "c", "version": "1", "valuesContent": ""}
    await cluster.put(ADDONS, {"metadata": {"name": "descheduler", "namespace": "kube-system"}, "spec": addon})
    annotation = {"management.harvesterhci.io/pendingOSImage": "Harvester v1.7.0"}
    await cluster.client.patch(NODES, "n1", MergePatch({"metadata": {"annotations": annotation}}))
    ctx.status["originals"] = [
        {"object": "Cluster fleet-local/local", "field": "spec.rkeConfig.upgradeStrategy", "applied": with_hooks({})},
        {"object": "Addon kube-system/descheduler", "field": "spec.enabled", "original": True, "applied": False},
    ]


async def state(cluster: Harvester) -> tuple[bool, bool, bool]:
    """Return if the cluster has our hooks, the descheduler is enabled, the node has pendingOSImage."""
    rancher = await cluster.find(PROVISIONING_CLUSTERS, "local", "fleet-local")
    addon = await cluster.find(ADDONS, "descheduler", "kube-system")
    node = await cluster.find(NODES, "n1")
    return (
        has_hooks(objects.spec(rancher)["rkeConfig"].get("upgradeStrategy")),
        addon["spec"]["enabled"],
        bool(objects.annotations_of(node)),
    )


@pytest.mark.rule(
    "pipeline: Succeeded reverts the overrides",
    "pipeline: Failed reverts the overrides",
    "pipeline: the descheduler is restored",
    "pipeline: the Rancher cluster's upgradeStrategy is restored",
    "pipeline: pendingOSImage annotations are removed",
)
@pytest.mark.parametrize("keep_strategy", [True, False])
async def test_overrides_are_reverted(cluster: Harvester, *, keep_strategy: bool) -> None:
    await cluster.nodes("n1")
    ctx = await everything(cluster, reached="NodeUpgrading")
    await changed(cluster, ctx)
    await give_back(ctx, keep_strategy=keep_strategy)
    await clean_up(ctx, keep_failed_jobs=False)
    assert await state(cluster) == (keep_strategy, True, False)
    assert len(ctx.status["ledger"] or []) == keep_strategy


async def test_settings_that_are_given_back_stay(cluster: Harvester) -> None:
    await cluster.nodes("n1")
    ctx = await everything(cluster, reached="NodeUpgrading")
    await changed(cluster, ctx)
    ctx.status["originals"] = None
    await give_back(ctx, keep_strategy=False)
    assert await state(cluster) == (True, False, True)


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Let the removal of Secrets fail twice, and count the removals by kind."""
    removals: Counter[str] = Counter()
    delete = Client.delete_collection

    async def fail_twice(self: Client, resource: Resource, **more: Any) -> None:
        removals[resource.plural] += 1
        if resource == SECRETS and removals["secrets"] < 3:
            raise Transient("no answer")
        await delete(self, resource, **more)

    monkeypatch.setattr(Client, "delete_collection", fail_twice)
    return removals


@pytest.mark.rule("pipeline: cleanup may be interrupted and repeated")
async def test_succeeded_step_is_not_repeated(cluster: Harvester, failing: Counter[str]) -> None:
    ctx = await everything(cluster)
    for _ in range(2):
        with pytest.raises(Transient):
            await clean_up(ctx, keep_failed_jobs=False)
    await clean_up(ctx, keep_failed_jobs=False)
    assert await left(cluster) == {}
    assert failing == dict.fromkeys(failing, 1) | {"secrets": 3}


@pytest.mark.usefixtures("failing")
async def test_deletion_removes_kept_jobs_after_an_interrupted_end(cluster: Harvester) -> None:
    ctx = await everything(cluster, reached="ClusterUpgrading", failed="up-cluster-upgrade")
    ctx.status.fail("because", cause="because", todo="Correct it")
    for _ in range(2):
        with pytest.raises(Transient):
            await clean_up(ctx, keep_failed_jobs=True)
    assert (await left(cluster))["Job"] == ["up-cluster-upgrade"]
    await clean_up(ctx, keep_failed_jobs=False)
    assert await left(cluster) == {}


async def test_labels_are_removed_once_while_other_removals_fail(cluster: Harvester, failing: Counter[str]) -> None:
    await cluster.nodes("n1", **MARKS)
    ctx = await everything(cluster)
    with pytest.raises(Transient):
        await clean_up(ctx, keep_failed_jobs=False)
    assert MARKS.keys().isdisjoint(objects.labels(await cluster.find(NODES, "n1")))
    # The next plan may use the nodes by now.
    await cluster.client.patch(NODES, "n1", MergePatch({"metadata": {"labels": MARKS}}))
    with pytest.raises(Transient):
        await clean_up(ctx, keep_failed_jobs=False)
    assert MARKS.items() <= objects.labels(await cluster.find(NODES, "n1")).items()
    assert failing["secrets"] == 2


async def test_nodes_without_marks_are_not_written(cluster: Harvester) -> None:
    await cluster.nodes("n1", "n2")
    await cluster.client.patch(NODES, "n1", MergePatch({"metadata": {"labels": MARKS}}))
    before = objects.resource_version(await cluster.find(NODES, "n2"))
    ctx = await everything(cluster)
    await clean_up(ctx, keep_failed_jobs=False)
    assert len([write for write in ctx.writes if write.resource == NODES]) == 1
    assert objects.resource_version(await cluster.find(NODES, "n2")) == before


@pytest.mark.rule("pipeline: Failed keeps the failed Job and its Pods until the plan succeeds or is deleted")
async def test_failed_job_of_an_earlier_attempt_stays(cluster: Harvester) -> None:
    """The Job is taken over before the Plans are removed, and loses its TTL after that."""
    await everything(cluster, reached="NodeUpgrading")
    await put_failed_job(cluster, await cluster.find(SUC_PLANS, "up-image-preload", "cattle-system"))
    second = MergePatch({"status": {"attempt": 2}})
    ctx = cluster.context(await cluster.client.patch(UPGRADE_PLANS, "up", second, subresource="status"))
    await cluster.put(SUC_PLANS, image_preload_plan(ctx.owner, PLAN, concurrency=1))
    ctx.status.fail("because", cause="because", todo="Correct it")
    patch, steps = ctx.client.patch, []

    async def note(resource: Resource, name: str, change: MergePatch, **options: Any) -> Any:
        if name == "apply":
            steps.append((list(change.body), sorted(await cluster.names(SUC_PLANS, "cattle-system"))))
        return await patch(resource, name, change, **options)

    ctx.client.patch = note  # type: ignore[method-assign, assignment]
    await clean_up(ctx, keep_failed_jobs=True)
    plans = ["up-image-cleanup", "up-image-preload", "up-image-preload-a2"]
    assert steps == [(["metadata"], plans), (["spec"], [])]
    job = await cluster.find(JOBS, "apply", "cattle-system")
    assert objects.owner_uid(job) == ctx.owner.uid
    assert "ttlSecondsAfterFinished" not in objects.spec(job)


@pytest.mark.rule("nodes: the upgrade repository outlives a deleted plan until the Jobs that read from it are removed")
async def test_running_job_owns_the_repository_of_its_plan_alone(cluster: Harvester) -> None:
    ctx = await everything(cluster, reached="ClusterUpgrading")
    await everything(cluster, "other")
    await cluster.finish(JOBS, "up-cluster-upgrade", "harvester-system", {"active": 1})

    async def owners() -> dict[str, Any]:
        kinds = [(kind, *KINDS[kind]) for kind in ("Deployment", "Service", "VirtualMachineImage")]
        return {
            f"{kind} {objects.name(one)}": objects.metadata(one).get("ownerReferences")
            for kind, resource, place in kinds
            for one in (await cluster.client.list(resource, namespace=place)).items
        }

    before = await owners()
    await clean_up(ctx, keep_failed_jobs=False)
    job = await cluster.find(JOBS, "up-cluster-upgrade", "harvester-system")
    handed_over = {name: [owner_reference(JOBS, job)] for name in before if " up-" in name}
    assert await owners() == before | handed_over
    assert len(handed_over) == 3


async def test_unlabeled_objects_of_a_failed_plan_are_removed(cluster: Harvester) -> None:
    ctx = await everything(cluster, reached="ClusterUpgrading")
    ctx.informers.has_unlabeled = True
    for name, plan in (("earlier", "up"), ("others", "other")):
        owner = Owner(name=plan, uid="")
        labels = {key: value for key, value in owner.labels(Component.IMAGE_PRELOAD).items() if value}
        body = cluster_upgrade_job(owner, JOB)
        body["metadata"] = {"name": name, "namespace": "cattle-system", "labels": labels}
        body["spec"]["template"]["metadata"]["labels"] = labels
        await cluster.put(JOBS, body)
        await cluster.put(SECRETS, {"metadata": body["metadata"]})
    ctx.status.fail("because", cause="because", todo="Correct it")
    await cluster.finish(JOBS, "earlier", "cattle-system", {"conditions": [{"type": "Failed", "status": "True"}]})
    await clean_up(ctx, keep_failed_jobs=True)
    assert await cluster.names(JOBS, "cattle-system") == ["earlier", "others"]
    assert await cluster.names(SECRETS, "cattle-system") == ["others"]
    await clean_up(ctx, keep_failed_jobs=False)
    assert await cluster.names(JOBS, "cattle-system") == ["others"]
