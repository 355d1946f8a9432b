"""Keeps status.estimatedCompletion: it changes only with the state of a node, or when its time has passed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.timestamps import format_time, parse_time
from upgrade_manager.nodes.estimate import completion, finishes, is_paused

if TYPE_CHECKING:
    from collections.abc import Collection

    from upgrade_manager.nodes.node_view import Decided
    from upgrade_manager.pipeline.context import ReconcileContext

FIELD = "estimatedCompletion"


def update_estimate(ctx: ReconcileContext, decisions: Collection[Decided]) -> None:
    """Estimate the end again when a node finishes; remove an estimate that does not hold any more."""
    now, known = ctx.now(), parse_time(ctx.status[FIELD])
    if any(finishes(*pair) for pair in decisions):
        found = completion(decisions, now=now)
        ctx.status[FIELD] = format_time(found) if found is not None else None
    elif known is not None and (known < now or is_paused(decisions)):
        ctx.status[FIELD] = None
