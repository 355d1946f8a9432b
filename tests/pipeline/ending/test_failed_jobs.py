"""Failed Jobs are kept, whatever the system-upgrade-controller does."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from tests.support.cluster.harvester import Harvester
from tests.support.server.lost_responses import responses_lost
from upgrade_manager.api.keys import Component
from upgrade_manager.api.names import component_name
from upgrade_manager.kube import objects
from upgrade_manager.kube.clock import loop_time
from upgrade_manager.kube.errors import Transient
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import JOBS, SUC_PLANS
from upgrade_manager.pipeline.context import ReconcileContext
from upgrade_manager.pipeline.ending import failed_jobs
from upgrade_manager.pipeline.ending.failed_jobs import remove_ttl, take_over
from upgrade_manager.resources.owner import owner_reference
from upgrade_manager.resources.suc_plan import PlanSettings, image_preload_plan
from upgrade_manager.resources.toolkit import ToolkitImage

PLACE = "cattle-system"
FAILED: Object = {"conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}], "failed": 3}
CLAIM = {"upgrade.cattle.io/controller": "system-upgrade-controller", "objectset.rio.cattle.io/hash": "h"}


async def put_job(
    cluster: Harvester, name: str, namespace: str, status: Object | None, labels: Object, owner: Object
) -> None:
    metadata = {"name": name, "namespace": namespace, "labels": labels, "ownerReferences": [owner]}
    pod = {"spec": {"restartPolicy": "Never", "containers": [{"name": "upgrade", "image": "i"}]}}
    spec = {"ttlSecondsAfterFinished": 900, "template": pod}
    await cluster.put(JOBS, {"metadata": metadata, "spec": spec}, status=status)


async def put_failed_job(cluster: Harvester, plan: Object, *, status: Object | None = FAILED) -> None:
    """Create the Job `apply` of a Plan."""
    owner = {**owner_reference(SUC_PLANS, plan), "controller": True}
    labels = {**objects.labels(plan), **CLAIM, "upgrade.cattle.io/node": "n1"}
    await put_job(cluster, "apply", PLACE, status, labels, owner)


async def failed_job(cluster: Harvester, *, status: Object | None = FAILED) -> tuple[ReconcileContext, Object]:
    """Create an upgrade and a Job of its Plan."""
    ctx = cluster.context(await cluster.plan())
    settings = PlanSettings(image=ToolkitImage(repository="r", tag="v1"), service_account="a")
    plan = await cluster.put(SUC_PLANS, image_preload_plan(ctx.owner, settings, concurrency=1))
    await put_failed_job(cluster, plan, status=status)
    return ctx, await cluster.find(JOBS, "apply", PLACE)


@pytest.mark.rule("pipeline: Failed keeps the failed Job and its Pods until the plan succeeds or is deleted")
async def test_failed_job_is_owned_by_the_plan(cluster: Harvester) -> None:
    ctx, _ = await failed_job(cluster)
    for _ in range(2):
        await take_over(ctx, Component.IMAGE_PRELOAD)
        await remove_ttl(ctx, Component.IMAGE_PRELOAD)
    assert len([write for write in ctx.writes if write.resource == JOBS]) == 2
    job = await cluster.find(JOBS, "apply", PLACE)
    assert objects.owner_uid(job) == ctx.owner.uid
    assert CLAIM.keys().isdisjoint(objects.labels(job))
    assert objects.labels(job)["upgrade.cattle.io/node"] == "n1"
    assert "ttlSecondsAfterFinished" not in objects.spec(job)


@pytest.mark.parametrize(
    ("status", "component"),
    [
        pytest.param(None, Component.IMAGE_PRELOAD, id="that has not failed"),
        pytest.param(FAILED, Component.IMAGE_CLEANUP, id="of another component"),
    ],
)
async def test_other_job_stays(cluster: Harvester, status: Object | None, component: Component) -> None:
    ctx, before = await failed_job(cluster, status=status)
    await take_over(ctx, component)
    await remove_ttl(ctx, component)
    assert await cluster.find(JOBS, "apply", PLACE) == before


async def test_job_that_is_claimed_again_is_taken_over_again(cluster: Harvester) -> None:
    ctx, before = await failed_job(cluster)
    began = loop_time()

    async def claim() -> None:
        await asyncio.sleep(1)
        labels = {"labels": CLAIM, "ownerReferences": objects.metadata(before)["ownerReferences"]}
        await cluster.client.patch(JOBS, "apply", MergePatch({"metadata": labels}), namespace=PLACE)

    async with asyncio.TaskGroup() as group:
        group.create_task(claim())
        await take_over(ctx, Component.IMAGE_PRELOAD)
    assert loop_time() - began == 2 * failed_jobs.REACTION_TIME
    assert objects.owner_uid(await cluster.find(JOBS, "apply", PLACE)) == ctx.owner.uid


async def test_plan_stays_until_the_controller_has_reacted(cluster: Harvester) -> None:
    ctx, _ = await failed_job(cluster)
    with responses_lost(ctx.client, "patch"), pytest.raises(Transient):
        await take_over(ctx, Component.IMAGE_PRELOAD)
    began = loop_time()
    await take_over(ctx, Component.IMAGE_PRELOAD)
    assert loop_time() - began == failed_jobs.REACTION_TIME
    await cluster.client.delete(SUC_PLANS, component_name(ctx.owner.name, Component.IMAGE_PRELOAD), namespace=PLACE)
    await take_over(ctx, Component.IMAGE_PRELOAD)
    assert loop_time() - began == failed_jobs.REACTION_TIME


async def test_take_over_is_bounded(cluster: Harvester) -> None:
    ctx, _ = await failed_job(cluster)

    async def claim() -> None:
        while True:
            await asyncio.sleep(failed_jobs.REACTION_TIME / 2)
            await cluster.client.patch(JOBS, "apply", MergePatch({"metadata": {"labels": CLAIM}}), namespace=PLACE)

    task = asyncio.create_task(claim())
    await take_over(ctx, Component.IMAGE_PRELOAD)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert loop_time() == failed_jobs.MAX_ROUNDS * failed_jobs.REACTION_TIME


async def test_deleted_job_is_ignored(cluster: Harvester) -> None:
    ctx, _ = await failed_job(cluster)
    lister = ctx.client.list

    async def list_and_lose(*given: Any, **options: Any) -> Any:
        listing = await lister(*given, **options)
        if listing.items:
            await cluster.client.delete(JOBS, "apply", namespace=PLACE)
        return listing

    ctx.client.list = list_and_lose  # type: ignore[method-assign]
    await take_over(ctx, Component.IMAGE_PRELOAD)
    assert await cluster.find(JOBS, "apply", PLACE) is None


@pytest.mark.rule("pipeline: Failed keeps the failed Job and its Pods until the plan succeeds or is deleted")
async def test_own_failed_job_is_kept_without_ttl(cluster: Harvester) -> None:
    ctx = cluster.context(await cluster.plan())
    complete = {"conditions": [{"type": "Complete", "status": "True"}]}
    labels, owner = ctx.owner.labels(Component.NODE_UPGRADE), ctx.owner.reference()
    for name, status in {"failed": FAILED, "done": complete, "running": None}.items():
        await put_job(cluster, name, "harvester-system", status, labels, owner)
    for _ in range(2):
        await failed_jobs.keep_own(ctx, (await cluster.client.list(JOBS, namespace="harvester-system")).items)
    assert await cluster.names(JOBS, "harvester-system") == ["failed"]
    kept = await cluster.find(JOBS, "failed", "harvester-system")
    assert "ttlSecondsAfterFinished" not in objects.spec(kept)
