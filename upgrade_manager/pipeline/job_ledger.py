"""Copies what the toolkit's Jobs record in the plan's ConfigMap into the ledger, and removes settled keys from both.

node_upgrade/phase.py and ending/settlement.py call it; toolkit/run/ledger.py writes the ConfigMap. Only our own toolkit
does: with Harvester's, no request is made. `hand_over` serves node_upgrade/vm_restore.py, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import HARVESTER_SYSTEM
from upgrade_manager.api.names import ledger_config_map
from upgrade_manager.api.toolkit_image import is_own
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import CONFIG_MAPS, JOBS
from upgrade_manager.pipeline import ledger
from upgrade_manager.resources.job_ledger import entries_of
from upgrade_manager.resources.owner import owner_reference

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.context import ReconcileContext

_NO_MARK: Object = {}


def is_used(ctx: ReconcileContext) -> bool:
    """Return True if the plan's Jobs run our own toolkit."""
    return is_own(ctx.status["toolkitImage"])


async def copy(ctx: ReconcileContext) -> None:
    """Copy the entries that Jobs have recorded into the ledger, which the caller writes."""
    found = await _find(ctx)
    if found is not None:
        ledger.put(ctx, entries_of(found))


async def settle(ctx: ReconcileContext, ids: Collection[str]) -> None:
    """Remove settled entries from the ConfigMap, then from the ledger, which the caller writes."""
    found = await _find(ctx) if ids else None
    keys = [key for key in objects.mapping(found, "data") if key in ids] if found is not None else []
    if found is not None and keys:
        patch = MergePatch({"data": dict.fromkeys(keys)}).at(objects.resource_version(found))
        name, event = objects.name(found), "settled entries removed"
        await ctx.patch(CONFIG_MAPS, name, patch, namespace=HARVESTER_SYSTEM, metadata_only=True, event=event)
    ledger.settle(ctx, ids)


async def discard_stale(ctx: ReconcileContext) -> None:
    """Remove the ConfigMap of an earlier plan of that name, before the toolkit writes this plan's."""
    found = await _read(ctx)
    if found is not None and not ctx.owner.owns(found):
        await _remove(ctx, found)


async def release(ctx: ReconcileContext, writers: Iterable[Object]) -> None:
    """Make the Jobs that may still write the ConfigMap its owners; remove it without such Jobs."""
    found = await _find(ctx)
    if found is not None:
        await hand_over(ctx, found, writers)


async def hand_over(ctx: ReconcileContext, found: Object, jobs: Iterable[Object], *, mark: Object = _NO_MARK) -> None:
    """Make the Jobs the owners of the ConfigMap, with these fields of its metadata; remove it without Jobs."""
    owners = [owner_reference(JOBS, job) for job in jobs]
    if not owners:
        await _remove(ctx, found)
    elif owners != objects.metadata(found).get("ownerReferences"):
        metadata = {**mark, "ownerReferences": owners}
        await ctx.mark(CONFIG_MAPS, objects.name(found), metadata, namespace=HARVESTER_SYSTEM)


async def _find(ctx: ReconcileContext) -> Object | None:
    found = await _read(ctx)
    return found if found is not None and ctx.owner.owns(found) else None


async def _read(ctx: ReconcileContext) -> Object | None:
    if not is_used(ctx):
        return None
    return await ctx.client.find(CONFIG_MAPS, ledger_config_map(ctx.owner.name), namespace=HARVESTER_SYSTEM)


async def _remove(ctx: ReconcileContext, found: Object) -> None:
    await ctx.remove(CONFIG_MAPS, objects.name(found), namespace=HARVESTER_SYSTEM, uid=objects.uid(found))
