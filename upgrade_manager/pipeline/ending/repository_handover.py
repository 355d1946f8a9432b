"""The upgrade repository of a plan that ends while its Jobs run: the repository is deleted with the last Job.

The Jobs, which read from the repository, become the owners of its objects, so that the garbage collector removes Jobs
and objects together. A later plan of the plan's name waits until the objects are removed.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import HARVESTER_SYSTEM
from upgrade_manager.api.timestamps import parse_time
from upgrade_manager.blockers.known_wait import RemovedDeploymentWait, RemovedImageWait, RemovedServiceWait
from upgrade_manager.facts.removal import removal, ways_out
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import NotFound
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import DEPLOYMENTS, JOBS, SERVICES, VIRTUAL_MACHINE_IMAGES
from upgrade_manager.pipeline import write_log
from upgrade_manager.pipeline.blocker_report import first_seen
from upgrade_manager.pipeline.ending import orphaned_jobs
from upgrade_manager.pipeline.errors import ForeignObject
from upgrade_manager.pipeline.outcome import Waiting
from upgrade_manager.pipeline.selections import UPGRADE_JOBS
from upgrade_manager.resources.owner import owner_reference
from upgrade_manager.runtime.concurrency import run_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from upgrade_manager.blockers.known_wait import KnownWait
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.resources import Resource
    from upgrade_manager.pipeline.context import ReconcileContext

#: Seconds between two attempts while the garbage collector removes an object of that name.
REMOVAL_RETRY = 2.0
#: The wait for the removal of an object, by its kind.
_WAITS: Mapping[str, type[KnownWait]] = {
    DEPLOYMENTS.kind: RemovedDeploymentWait,
    SERVICES.kind: RemovedServiceWait,
    VIRTUAL_MACHINE_IMAGES.kind: RemovedImageWait,
}


async def hand_over(client: Client, selector: str, readers: Iterable[Object], *, kinds: Sequence[Resource]) -> None:
    """Make the Jobs the owners of the selected objects of these kinds. Labels stay."""
    owners = [owner_reference(JOBS, job) for job in readers]
    await run_all(*(_hand_over_all(client, resource, selector, owners) for resource in kinds))


async def _hand_over_all(client: Client, resource: Resource, selector: str, owners: list[Object]) -> None:
    try:
        found = await client.list(resource, namespace=HARVESTER_SYSTEM, label_selector=selector, metadata_only=True)
    except NotFound:
        # The kind does not exist.
        return
    changed = [one for one in found.items if objects.metadata(one).get("ownerReferences") != owners]
    await run_all(*(_hand_over(client, resource, objects.name(one), owners) for one in changed))


async def _hand_over(client: Client, resource: Resource, name: str, owners: list[Object]) -> None:
    patch = MergePatch({"metadata": {"ownerReferences": owners}})
    with contextlib.suppress(NotFound):
        await client.patch(resource, name, patch, namespace=HARVESTER_SYSTEM, metadata_only=True)
        event = "handed over to running Jobs"
        write_log.patched(resource, name, patch, namespace=HARVESTER_SYSTEM, event=event)


async def ensure(ctx: ReconcileContext, resource: Resource, manifest: Object) -> Waiting | None:
    """Create the object; return Waiting while Jobs of an earlier plan own an object of that name."""
    try:
        await ctx.ensure(resource, manifest)
    except ForeignObject as error:
        if not _is_handed_over(error.found):
            raise
        waiting = await orphaned_jobs.wait(ctx, await ctx.watch(UPGRADE_JOBS))
        return waiting or _being_removed(ctx, resource, error.found)
    return None


def _being_removed(ctx: ReconcileContext, resource: Resource, found: Object) -> Waiting:
    wait = removal_wait(ctx, resource, found, detail=f"an UpgradePlan that has ended has left it, and {removal(found)}")
    named = f"{resource.kind} {objects.qualified_name(found)}"
    message = f"{named} of an UpgradePlan that has ended is being removed"
    return Waiting(message=message, after=REMOVAL_RETRY, waits=(wait,))


def removal_wait(ctx: ReconcileContext, resource: Resource, found: Object, *, detail: str) -> KnownWait:
    """Return the wait for the removal of an object of the repository, after which it is created again."""
    kind, name = _WAITS[resource.kind], objects.name(found)
    began = parse_time(objects.metadata(found).get("deletionTimestamp"))
    return kind(
        namespace=HARVESTER_SYSTEM,
        name=name,
        since=began or first_seen(ctx, kind, name),
        detail=detail,
        remedies=ways_out(resource, found),
    )


def _is_handed_over(found: Object) -> bool:
    owners = objects.metadata(found).get("ownerReferences") or []
    return any(owner["kind"] == JOBS.kind for owner in owners)
