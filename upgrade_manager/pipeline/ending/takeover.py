"""Takes over the objects of a plan that an earlier version began, and that only ownerReferences tie to the plan.

The reconciler calls it in the first reconcile of a plan that was accepted by another process. Jobs that can run and
the upgrade repository get the label with the plan's uid and lose the ownerReference in one patch; a suspended or
finished Job may go with the plan. SUC Plans and their Jobs are never changed: the system-upgrade-controller restarts
running Jobs when a label is added. Until the clean-up removes them, `Owner.suc_selector` selects them by the plan's
name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from upgrade_manager.api.keys import CATTLE_SYSTEM, HARVESTER_SYSTEM, LABEL_PLAN_UID
from upgrade_manager.facts.job_state import can_run
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Conflict, NotFound, PreconditionFailed, Terminal
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import JOBS, SUC_PLANS
from upgrade_manager.pipeline.node_upgrade import vm_restore
from upgrade_manager.pipeline.plan_objects import skip_missing
from upgrade_manager.resources.repository import REPOSITORY_KINDS
from upgrade_manager.runtime.concurrency import run_all

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.resources import Resource
    from upgrade_manager.pipeline.context import ReconcileContext

#: The kinds of the objects that the manager itself created in its namespace.
_KINDS = (JOBS, *REPOSITORY_KINDS)
log = structlog.get_logger(__name__)


async def take_over(ctx: ReconcileContext) -> None:
    """Label the plan's objects that have no uid label, once in this process."""
    if ctx.informers.is_taken_over:
        return
    await run_all(_find_plans(ctx), vm_restore.label_list(ctx), *(_take_over(ctx, kind) for kind in _KINDS))
    ctx.informers.is_taken_over = True


async def _find_plans(ctx: ReconcileContext) -> None:
    """Find unlabeled SUC Plans, and failed Jobs that an earlier process kept before it removed their Plans."""
    ctx.informers.has_unlabeled = any([await _unlabeled(ctx, kind, CATTLE_SYSTEM) for kind in (SUC_PLANS, JOBS)])


async def _take_over(ctx: ReconcileContext, resource: Resource) -> None:
    found = await _unlabeled(ctx, resource, HARVESTER_SYSTEM)
    await run_all(*(_label(ctx, resource, one) for one in found))


async def _unlabeled(ctx: ReconcileContext, resource: Resource, namespace: str) -> list[Object]:
    """Return the plan's objects without uid label; Jobs have all fields, because the caller reads their status."""
    listed = ctx.client.list(
        resource,
        namespace=namespace,
        label_selector=ctx.owner.unlabeled_selector(),
        metadata_only=resource != JOBS,
    )
    found = await skip_missing(ctx.client, namespace, listed)
    return [one for one in found.items if ctx.owner.owns(one)] if found is not None else []


async def _label(ctx: ReconcileContext, resource: Resource, found: Object) -> None:
    is_dependent = resource == JOBS and not can_run(found)
    metadata: Object = {"labels": {LABEL_PLAN_UID: ctx.owner.uid}}
    if not is_dependent:
        owners = objects.metadata(found)["ownerReferences"]
        metadata["ownerReferences"] = [one for one in owners if one.get("uid") != ctx.owner.uid] or None
    # The resourceVersion makes the patch conflict if the Job changes after the decision, which is then repeated.
    patch = MergePatch({"metadata": metadata}).at(objects.resource_version(found))
    name, event = objects.name(found), "taken over from an earlier version"
    write = ctx.patch(resource, name, patch, namespace=HARVESTER_SYSTEM, metadata_only=True, event=event)
    # The garbage collector would end a running Job with the plan, perhaps while the Job writes the OS.
    is_needed = resource == JOBS and not is_dependent
    await _tolerate(ctx, write, is_needed=is_needed)


async def _tolerate(ctx: ReconcileContext, write: Awaitable[None], *, is_needed: bool) -> None:
    """Await the write; ignore a refusal on a plan that is deleted, because the garbage collector removes the object."""
    try:
        await write
    except NotFound:
        log.info("object not found, not taken over")
    except (Terminal, Conflict) as error:
        if is_needed or not objects.is_deleting(ctx.raw) or isinstance(error, PreconditionFailed):
            raise
        log.warning("object not taken over", error=str(error))
