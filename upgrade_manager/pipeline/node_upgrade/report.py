"""Reports the node upgrade: milestones of nodes as events, and the estimated end in the status.

`phase.py` calls it when a decision about a node has changed; nodes/milestones.py and nodes/estimate.py decide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.attribution import last_changed_by
from upgrade_manager.api.node_states import NodeState
from upgrade_manager.api.phases import PhaseName
from upgrade_manager.api.text import one_line
from upgrade_manager.api.timestamps import format_time, parse_time
from upgrade_manager.nodes.estimate import completion, finishes
from upgrade_manager.nodes.milestones import MilestoneReason, reached

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from upgrade_manager.nodes.node_view import Decided
    from upgrade_manager.pipeline.context import ReconcileContext


PHASE = PhaseName.NODE_UPGRADE.active
#: The status field of the estimate, which changes only with the state of a node, or after the estimated time.
ESTIMATE = "estimatedCompletion"
#: Milestones that a user's change of the plan causes.
_CAUSED_BY_USERS = (MilestoneReason.NODE_PAUSED, MilestoneReason.NODE_RESUMED)
#: Characters of a user's name.
_MAX_USER = 100


def report_milestones(ctx: ReconcileContext, decisions: Iterable[Decided]) -> None:
    """Record the milestones that nodes have reached, each once."""
    for view, decision in decisions:
        # Nearly all nodes of a large cluster are done, or wait for Rancher.
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
    """Estimate the end again when a node finishes; remove the estimate when a node is paused."""
    moved = moved_nodes(decisions)
    if any(decision.is_done and finishes(view, decision) for view, decision in moved):
        found = completion(decisions, now=ctx.now())
        ctx.status[ESTIMATE] = format_time(found) if found is not None else None
    elif any(decision.state is NodeState.UPGRADE_PAUSED for _, decision in moved):
        ctx.status[ESTIMATE] = None


def remove_passed_estimate(ctx: ReconcileContext) -> None:
    """Remove an estimate whose time has passed; the caller may estimate again afterwards."""
    known = parse_time(ctx.status[ESTIMATE])
    if known is not None and known < ctx.now():
        ctx.status[ESTIMATE] = None


def moved_nodes(decisions: Iterable[Decided]) -> list[Decided]:
    """Return the nodes whose state differs from the recorded one."""
    return [(view, decision) for view, decision in decisions if decision.state not in {None, view.state}]
