"""The failed Jobs of a failed upgrade, which are kept for diagnosis until the plan succeeds or is deleted.

cleanup.py calls it, and phases/host_plans.py, which removes Plans earlier; orphaned_jobs.py handles running Jobs.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import CATTLE_SYSTEM, LABEL_PLAN_UID, Component
from upgrade_manager.facts.job_state import JobState, Progress
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import NotFound
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import JOBS, SUC_PLANS
from upgrade_manager.runtime.concurrency import run_all

if TYPE_CHECKING:
    from collections.abc import Iterable

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.context import ReconcileContext

#: The labels by which the system-upgrade-controller selects its Jobs, to delete Jobs of a deleted or changed Plan.
_CONTROLLER_LABELS = ("upgrade.cattle.io/controller", "objectset.rio.cattle.io/hash")
#: Seconds until the system-upgrade-controller has reacted to a change of a Job.
REACTION_TIME = 2.0
#: The system-upgrade-controller may claim a Job again while it processes other nodes.
MAX_ROUNDS = 5


async def take_over(ctx: ReconcileContext, component: Component | None = None) -> None:
    """Make the UpgradePlan the owner of the failed Jobs of Plans, which would otherwise be deleted with their Plan.

    These are all Plans of the upgrade, or that of the component. They must be deleted: they would go on with other
    nodes after the end of the upgrade.
    """
    for number in range(MAX_ROUNDS):
        failed = await _failed(ctx, component)
        claimed = [job for job in failed if _is_claimed(ctx, job)]
        for job in claimed:
            await _change(ctx, job, metadata=_ownership(ctx))
        # A Job may have been taken over just before a crash or a lost response: in the first round, the controller gets
        # time to observe the change while the Plan exists.
        if not claimed and (number or not failed or not await _has_plan(ctx, component)):
            return
        await asyncio.sleep(REACTION_TIME)


async def _has_plan(ctx: ReconcileContext, component: Component | None) -> bool:
    selector = ctx.owner.suc_selector(component)
    plans = await ctx.client.list(SUC_PLANS, namespace=CATTLE_SYSTEM, label_selector=selector, metadata_only=True)
    return bool(plans.items)


async def remove_ttl(ctx: ReconcileContext, component: Component | None = None) -> None:
    """Remove the TTL of 15 minutes from the Jobs that were taken over; their Plans must be deleted before."""
    for job in await _failed(ctx, component):
        await _keep(ctx, job)


async def keep_own(ctx: ReconcileContext, jobs: Iterable[Object]) -> None:
    """Keep the manager's failed Jobs until the plan succeeds or is deleted, without their TTL; remove its others."""
    await run_all(*(_keep_or_remove(ctx, job) for job in jobs))


async def _keep_or_remove(ctx: ReconcileContext, job: Object) -> None:
    if _is_failed(job):
        await _keep(ctx, job)
    else:
        await ctx.remove(JOBS, objects.name(job), namespace=objects.namespace(job), uid=objects.uid(job))


async def _keep(ctx: ReconcileContext, job: Object) -> None:
    """Remove the TTL, and let the garbage collector delete the Job with the plan, in one patch."""
    fields: Object = {}
    if objects.spec(job).get("ttlSecondsAfterFinished") is not None:
        fields["spec"] = {"ttlSecondsAfterFinished": None}
    if objects.owner_uid(job) != ctx.owner.uid:
        fields["metadata"] = {"ownerReferences": [ctx.owner.reference()]}
    if fields:
        await _change(ctx, job, **fields)


async def _failed(ctx: ReconcileContext, component: Component | None) -> list[Object]:
    selector, uid = ctx.owner.suc_selector(component), ctx.owner.uid
    jobs = await ctx.client.list(JOBS, namespace=CATTLE_SYSTEM, label_selector=selector)
    return [job for job in jobs.items if _is_failed(job) and objects.labels(job).get(LABEL_PLAN_UID, uid) == uid]


def _is_failed(job: Object) -> bool:
    return JobState.of(job).progress is Progress.FAILED


def _is_claimed(ctx: ReconcileContext, job: Object) -> bool:
    is_dependent = objects.owner_uid(job) == ctx.owner.uid
    return not is_dependent or not objects.labels(job).keys().isdisjoint(_CONTROLLER_LABELS)


def _ownership(ctx: ReconcileContext) -> Object:
    return {"ownerReferences": [ctx.owner.reference()], "labels": dict.fromkeys(_CONTROLLER_LABELS)}


async def _change(ctx: ReconcileContext, job: Object, **fields: Object) -> None:
    patch = MergePatch(fields)
    with contextlib.suppress(NotFound):
        await ctx.patch(JOBS, objects.name(job), patch, namespace=objects.namespace(job), metadata_only=True)
