"""The upgrade repository of a plan that ends while its Jobs run: they read from it, and it goes with the last of them.

The Jobs become the owners of the objects, so that the garbage collector removes both together. A later plan of that
name waits until the objects are removed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import HARVESTER_SYSTEM, LABEL_PLAN, Component
from upgrade_manager.api.names import component_name, repo_service_name
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import DEPLOYMENTS, JOBS, SERVICES, VIRTUAL_MACHINE_IMAGES
from upgrade_manager.pipeline import orphaned_jobs
from upgrade_manager.pipeline.errors import ForeignObject
from upgrade_manager.pipeline.phases.base import Waiting
from upgrade_manager.pipeline.selections import UPGRADE_JOBS
from upgrade_manager.resources.owner import owner_reference
from upgrade_manager.runtime.concurrency import run_all

if TYPE_CHECKING:
    from collections.abc import Iterable

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.resources import Resource
    from upgrade_manager.pipeline.context import ReconcileContext

#: Seconds between two attempts while the garbage collector removes an object of that name.
REMOVAL_RETRY = 2.0


async def hand_over(ctx: ReconcileContext, readers: Iterable[Object]) -> None:
    """Make the Jobs the owners of the repository and its image; an image that spec.image names is not the plan's."""
    owners = [owner_reference(JOBS, job) for job in readers]
    if not owners:
        return
    kept = [
        (DEPLOYMENTS, component_name(ctx.owner.name, Component.REPO)),
        (SERVICES, repo_service_name(ctx.owner.name)),
    ]
    if not ctx.plan.spec.image:
        kept.append((VIRTUAL_MACHINE_IMAGES, component_name(ctx.owner.name, Component.ISO)))
    await run_all(*(_hand_over(ctx, resource, name, owners) for resource, name in kept))


async def _hand_over(ctx: ReconcileContext, resource: Resource, name: str, owners: list[Object]) -> None:
    found = await ctx.client.find(resource, name, namespace=HARVESTER_SYSTEM, metadata_only=True)
    if found is None or not ctx.owner.owns(found):
        return
    # Without the label the clean-up, also that of a later plan of this name, does not remove it.
    metadata = {"ownerReferences": owners, "labels": {LABEL_PLAN: None}}
    await ctx.mark(resource, name, metadata, namespace=HARVESTER_SYSTEM, event="handed over to running Jobs")


async def ensure(ctx: ReconcileContext, resource: Resource, manifest: Object) -> Waiting | None:
    """Create the object; return Waiting while Jobs of an earlier plan own one of that name."""
    try:
        await ctx.ensure(resource, manifest)
    except ForeignObject as error:
        if not _is_handed_over(error.found):
            raise
        waiting = await orphaned_jobs.wait(ctx, await ctx.watch(UPGRADE_JOBS))
        named = f"{resource.kind} {objects.namespace(manifest)}/{objects.name(manifest)}"
        removed = Waiting(message=f"{named} of an UpgradePlan that has ended is being removed", after=REMOVAL_RETRY)
        return waiting or removed
    return None


def _is_handed_over(found: Object) -> bool:
    owners = objects.metadata(found).get("ownerReferences") or []
    return any(owner["kind"] == JOBS.kind for owner in owners)
