"""Changes that users have made at the advice of remedies, and have not given back when the plan ends.

settlement.py, failure.py and passing_on.py call it, for the final message, the next steps and the event of a deletion;
api/advised.py has the record of what was advised, advised_fields.py the comparisons.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from upgrade_manager.api.remedy import Remedy
from upgrade_manager.api.text import namespaced_name
from upgrade_manager.kube.errors import KubeError
from upgrade_manager.pipeline.ending.advised_fields import COMPARISONS, Advised, Comparison
from upgrade_manager.pipeline.write_log import log

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.context import ReconcileContext

STILL_CHANGED = "StillChanged"
#: The moment to give a change back, after a plan that has not succeeded.
AFTER_SUCCESS = ", once an upgrade has succeeded"
#: Seconds for all objects, which must not hold up the end of the plan.
_TIMEOUT = 10.0
_NOT_CHECKED = "could not be checked"


async def still_changed(ctx: ReconcileContext, *, when: str = "") -> list[Remedy]:
    """Return how each change is given back that is not, or cannot be checked, each with an event.

    Whether the user has made the change is unknown. The record stays for the next attempt, and for the next plan after
    a failure. `when` is the moment to give it back.
    """
    recorded = ctx.status["advised"]
    if not recorded:
        return []
    states: dict[int, str] = {}
    try:
        async with asyncio.timeout(_TIMEOUT):
            for number, entry in enumerate(recorded):
                states[number] = await _state(ctx, entry)
    except TimeoutError:
        log.warning("advised changes cannot be checked", plan=ctx.owner.name)
    found: dict[str, Remedy] = {}
    for number, entry in enumerate(recorded):
        state = states.get(number, _unchecked(entry))
        if state and entry["undo"] not in found:
            found[entry["undo"]] = _named(ctx, entry, state, when)
    return list(found.values())


def _named(ctx: ReconcileContext, entry: dict[str, Any], state: str, when: str) -> Remedy:
    named = namespaced_name(entry.get("namespace") or "", entry["name"])
    text = (
        f"{entry['kind']} {named}: {state}. A remedy advised to change it: if you changed it for the upgrade, give it "
        f"back{when}"
    )
    remedy = Remedy(text, command=entry["undo"])
    ctx.events.warning(ctx.raw, STILL_CHANGED, str(remedy), about=f"{entry['kind']} {named} {entry['field']}")
    return remedy


def _unchecked(entry: dict[str, Any]) -> str:
    return f"{entry['field']} {_NOT_CHECKED}"


async def _state(ctx: ReconcileContext, entry: dict[str, Any]) -> str:
    """Return how the object differs; empty if it is as it was."""
    path = entry["field"].partition("[")[0]
    comparison = COMPARISONS.get((entry["kind"], path))
    if comparison is None:  # a later version has recorded it
        return _unchecked(entry)
    try:
        found = await _objects(ctx, comparison, entry)
    except KubeError as error:
        log.warning("advised change cannot be checked", object=entry["name"], error=str(error))
        return _unchecked(entry)
    if not found and not comparison.is_deleted:
        return ""
    advised = Advised(name=entry["name"], path=path, original=json.loads(entry["original"]))
    if any(comparison.is_as_it_was(one, advised) for one in found):
        return ""
    if not found and comparison.by_name:
        return "it does not exist"
    return comparison.state or f"{entry['field']} is not as it was"


async def _objects(ctx: ReconcileContext, comparison: Comparison, entry: dict[str, Any]) -> list[Object]:
    selector = f"metadata.name={entry['name']}" if comparison.by_name else ""
    found: list[Object] = []
    for resource in comparison.resources:
        namespace = entry.get("namespace", "")
        found += (await ctx.client.list(resource, namespace=namespace, field_selector=selector)).items
    return found
