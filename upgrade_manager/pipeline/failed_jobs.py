"""The failed Jobs of a failed upgrade, which stay for diagnosis until the plan is deleted."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import CATTLE_SYSTEM, HARVESTER_SYSTEM, Component
from upgrade_manager.api.names import component_name
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import NotFound
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import JOBS, SUC_PLANS
from upgrade_manager.nodes.job_state import JobState, Progress
from upgrade_manager.pipeline.vm_restore import is_restoring
from upgrade_manager.runtime.concurrency import run_all

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.context import ReconcileContext

#: By these the system-upgrade-controller knows a Job as its own: it removes those whose Plan is gone or has changed.
_CONTROLLERS_LABELS = ("upgrade.cattle.io/controller", "objectset.rio.cattle.io/hash")
#: Seconds in which the controller has certainly seen what was done to a Job, and has done what it does then.
NOTICED = 2.0
#: A controller that works on other nodes meanwhile may claim a Job again; so often is enough for most of them.
ROUNDS = 5


async def take_over(ctx: ReconcileContext, component: Component) -> None:
    """Make the failed Jobs of a Plan of the system-upgrade-controller the upgrade's own, so that the Plan can go.

    They would not outlive it. The Plan itself must not stay: it would go on with other nodes after the upgrade's end.
    """
    for number in range(ROUNDS):
        failed = await _failed(ctx, component)
        claimed = [job for job in failed if _is_claimed(ctx, job)]
        for job in claimed:
            await _change(ctx, job, metadata=_ours(ctx))
        # Jobs that are ours at the first look may have become so a moment ago: by a manager that died then, or by a
        # request whose answer got lost.
        if not claimed and (number or not failed or not await _has_plan(ctx, component)):
            return
        # The controller may be looking at the failure now: a Job that still seems its own needs its Plan to survive.
        await asyncio.sleep(NOTICED)


async def _has_plan(ctx: ReconcileContext, component: Component) -> bool:
    name = component_name(ctx.owner.name, component)
    return await ctx.find(SUC_PLANS, name, namespace=CATTLE_SYSTEM, metadata_only=True) is not None


async def make_lasting(ctx: ReconcileContext, component: Component) -> None:
    """Take the time to live from Jobs that were taken over: 15 minutes, which their Plan would have brought back."""
    for job in await _failed(ctx, component):
        await _lift_limit(ctx, job)


async def keep_own(ctx: ReconcileContext) -> None:
    """Keep those of the manager's own Jobs that have failed, for as long as the plan is there, and remove the others.

    Their time to live is a week, so that nothing is left for ever by a manager that is gone; a user who comes back from
    his holidays shall find what he was told is kept.
    """
    jobs = await ctx.client.list(JOBS, namespace=HARVESTER_SYSTEM, label_selector=ctx.owner.selector())
    await run_all(*(_keep_or_remove(ctx, job) for job in jobs.items))


async def _keep_or_remove(ctx: ReconcileContext, job: Object) -> None:
    if _is_failed(job):
        await _lift_limit(ctx, job)
        return
    if is_restoring(job):
        # VMs are being started again: that goes on after the failure, and its Job goes with the plan.
        return
    with contextlib.suppress(NotFound):
        await ctx.client.delete(JOBS, objects.name(job), namespace=HARVESTER_SYSTEM, uid=objects.uid(job))


async def _lift_limit(ctx: ReconcileContext, job: Object) -> None:
    if objects.spec(job).get("ttlSecondsAfterFinished") is not None:
        await _change(ctx, job, spec={"ttlSecondsAfterFinished": None})


async def _failed(ctx: ReconcileContext, component: Component) -> list[Object]:
    selector = ctx.owner.selector(component)
    jobs = await ctx.client.list(JOBS, namespace=CATTLE_SYSTEM, label_selector=selector)
    return [job for job in jobs.items if _is_failed(job)]


def _is_failed(job: Object) -> bool:
    return JobState.of(job).progress is Progress.FAILED


def _is_claimed(ctx: ReconcileContext, job: Object) -> bool:
    return not ctx.owner.owns(job) or not objects.labels(job).keys().isdisjoint(_CONTROLLERS_LABELS)


def _ours(ctx: ReconcileContext) -> Object:
    return {"ownerReferences": [ctx.owner.reference()], "labels": dict.fromkeys(_CONTROLLERS_LABELS)}


async def _change(ctx: ReconcileContext, job: Object, **fields: Object) -> None:
    patch = MergePatch(fields)
    try:
        await ctx.patch(JOBS, objects.name(job), patch, namespace=objects.namespace(job), metadata_only=True)
    except NotFound:
        return
