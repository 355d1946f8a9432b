"""Changes that users have made at the advice of remedies, and have not given back when the plan ends.

settlement.py and failure.py call it, for the final message; api/advised.py has the record of what was advised.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from upgrade_manager.api.remedy import Remedy
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import KubeError
from upgrade_manager.kube.resources import DEPLOYMENTS, LONGHORN_VOLUMES, NODES, POD_DISRUPTION_BUDGETS
from upgrade_manager.pipeline.write_log import log

if TYPE_CHECKING:
    from upgrade_manager.pipeline.context import ReconcileContext

STILL_CHANGED = "StillChanged"
#: Seconds for all objects, which must not hold up the end of the plan.
_TIMEOUT = 10.0
_RESOURCES = {one.kind: one for one in (DEPLOYMENTS, LONGHORN_VOLUMES, NODES, POD_DISRUPTION_BUDGETS)}
#: Kinds whose deletion is a change: other objects leave with what they stand for.
_SAVED = frozenset({POD_DISRUPTION_BUDGETS.kind})


async def still_changed(ctx: ReconcileContext, *, when: str = "") -> list[Remedy]:
    """Return how each change is given back that is not, each with an event; the record stays for the next attempt.

    Whether the user has made the change is unknown. `when` is the moment to give it back, after a failure.
    """
    found: dict[str, Remedy] = {}
    try:
        async with asyncio.timeout(_TIMEOUT):
            for entry in ctx.status["advised"] or ():
                if entry["undo"] not in found and await _is_changed(ctx, entry):
                    found[entry["undo"]] = _named(ctx, entry, when)
    except TimeoutError:
        log.warning("advised changes cannot be checked", plan=ctx.owner.name)
    return list(found.values())


def _named(ctx: ReconcileContext, entry: dict[str, Any], when: str) -> Remedy:
    named = "/".join(filter(None, (entry.get("namespace"), entry["name"])))
    text = (
        f"{entry['kind']} {named}: {entry['field']} is not as it was when a remedy advised to change it. If you "
        f"changed it for the upgrade, give it back{when}"
    )
    remedy = Remedy(text, command=entry["undo"])
    ctx.events.warning(ctx.raw, STILL_CHANGED, str(remedy), about=f"{entry['kind']} {named} {entry['field']}")
    return remedy


async def _is_changed(ctx: ReconcileContext, entry: dict[str, Any]) -> bool:
    """Return False also for an object that cannot be read: a guess would be a false alarm."""
    resource = _RESOURCES.get(entry["kind"])
    if resource is None:
        return False
    selector = f"metadata.name={entry['name']}"
    try:
        page = await ctx.client.list(resource, namespace=entry.get("namespace", ""), field_selector=selector)
    except KubeError as error:
        log.warning("advised change cannot be checked", object=entry["name"], error=str(error))
        return False
    if not page.items:
        return entry["kind"] in _SAVED
    now, original = objects.value(page.items[0], *entry["field"].split(".")), json.loads(entry["original"])
    if entry["field"] == "spec.taints":
        return original not in (now if isinstance(now, list) else [])
    return bool(now != original)
