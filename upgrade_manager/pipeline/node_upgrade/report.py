"""Reports the node upgrade: milestones of nodes as events, and the estimated end in the status.

`phase.py` calls it in each reconcile; nodes/milestones.py and nodes/estimate.py decide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.attribution import last_changed_by
from upgrade_manager.api.phases import PhaseName
from upgrade_manager.api.text import one_line
from upgrade_manager.api.timestamps import format_time, parse_time
from upgrade_manager.nodes.estimate import completion, finishes, is_paused
from upgrade_manager.nodes.milestones import MilestoneReason, reached

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from upgrade_manager.nodes.node_view import Decided
    from upgrade_manager.pipeline.context import ReconcileContext


PHASE = PhaseName.NODE_UPGRADE.active
#: Of the status; it changes only with the state of a node, or when its time has passed.
ESTIMATE = "estimatedCompletion"
#: Milestones that a user's change of the plan causes.
_CAUSED_BY_USERS = (MilestoneReason.NODE_PAUSED, MilestoneReason.NODE_RESUMED)
#: Characters of a user's name.
_MAX_USER = 100


def report_milestones(ctx: ReconcileContext, decisions: Iterable[Decided]) -> None:
    """Record the milestones that nodes have reached, each once."""
    for view, decision in decisions:
        # Of a thousand nodes nearly all are done, or wait for Rancher.
        if (not view.jobs and decision.state is None) or _is_done(ctx, view.name):
            continue
        for milestone in reached(view, decision, now=ctx.now()):
            message = milestone.message
            if milestone.reason in _CAUSED_BY_USERS:
                message = f"{message} (last change of the plan: {_user(ctx)})"
            ctx.events.once(ctx.raw, milestone.reason, message, about=view.name, phase=PHASE, at=milestone.at)


def _user(ctx: ReconcileContext) -> str:
    name = one_line(last_changed_by(ctx.plan.spec, ctx.plan.annotations.raw))
    return name if len(name) <= _MAX_USER else f"{name[:_MAX_USER]}…"


def _is_done(ctx: ReconcileContext, node: str) -> bool:
    return ctx.events.is_handled(ctx.raw, MilestoneReason.NODE_UPGRADED, node)


def update_estimate(ctx: ReconcileContext, decisions: Collection[Decided]) -> None:
    """Estimate the end again when a node finishes; remove an estimate that does not hold any more."""
    now, known = ctx.now(), parse_time(ctx.status[ESTIMATE])
    if any(finishes(*pair) for pair in decisions):
        found = completion(decisions, now=now)
        ctx.status[ESTIMATE] = format_time(found) if found is not None else None
    elif known is not None and (known < now or is_paused(decisions)):
        ctx.status[ESTIMATE] = None
