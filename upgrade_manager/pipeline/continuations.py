"""The entries of the annotation `continue`, by which users let nodes go on that hold; pause.py calls it.

An entry is recorded in the node's status first, then reported, then removed, so that a manager that is killed meanwhile
repeats the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.attribution import NOT_RECORDED, last_changed_by, signed
from upgrade_manager.api.holds import continued, read_entries, refusal, with_continued
from upgrade_manager.api.keys import ANNOTATION_CONTINUE, ANNOTATION_LAST_CHANGED_BY
from upgrade_manager.api.phases import PhaseName
from upgrade_manager.pipeline.events import NODE_CONTINUED

if TYPE_CHECKING:
    from upgrade_manager.pipeline.context import ReconcileContext


async def take(ctx: ReconcileContext, *, user: str) -> None:
    """Let the nodes go on that the annotation names, and remove its entries, with a warning about the others."""
    raw = ctx.plan.annotations.raw
    entries = read_entries(raw.get(ANNOTATION_CONTINUE, ""))
    refused = {}
    for entry in entries:
        if entry in continued(ctx.status.fields):
            continue
        why = refusal(ctx.status.fields, entry)
        if why:
            refused[entry] = why
        else:
            node, _, point = entry.rpartition(":")
            nodes = ctx.status["nodeUpgradeStatuses"]
            ctx.status["nodeUpgradeStatuses"] = with_continued(nodes, node=node, point=point)
    await ctx.persist()
    for entry in entries:
        node, _, point = entry.rpartition(":")
        if entry in refused:
            text = f"Annotation {ANNOTATION_CONTINUE}: {refused[entry]}. The entry is removed"
            ctx.events.warning(ctx.raw, "ContinueIgnored", text, about=entry)
        else:
            text = f"Node {node}: continued before its {point.lower()} (last change of the plan: {user})"
            ctx.events.once(ctx.raw, NODE_CONTINUED, text, about=entry, phase=PhaseName.NODE_UPGRADE.active)
    # No field shows the entry afterwards.
    await ctx.events.sent(ctx.raw)
    await ctx.annotate(_without_entries(ctx))


def _without_entries(ctx: ReconcileContext) -> dict[str, str | None]:
    """Return the annotations without the entries; the user of the last change is still the one who made it."""
    raw, spec = ctx.plan.annotations.raw, ctx.plan.spec
    user = last_changed_by(spec, raw)
    left = {key: value for key, value in raw.items() if key != ANNOTATION_CONTINUE}
    by: dict[str, str | None] = {} if user == NOT_RECORDED else {ANNOTATION_LAST_CHANGED_BY: signed(user, spec, left)}
    return {ANNOTATION_CONTINUE: None, **by}
