"""The nodes that a pause holds: `phase` asks it in each decision, `report` where the upgrade holds.

nodes/pauses.py decides. pipeline/continuations.py lets a node go on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.conditions import PAUSE_AFTER
from upgrade_manager.api.holds import HoldPoint, continued, held_nodes, with_holds
from upgrade_manager.api.node_states import upgraded_names
from upgrade_manager.api.toolkit_image import is_own
from upgrade_manager.nodes.pauses import held_point, node_pause, plan_pause, where_held, with_new_job, without_reboot
from upgrade_manager.pipeline.pause import reason_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from upgrade_manager.nodes.gate import Closed
    from upgrade_manager.nodes.model import Decision, Decisions, NodeView
    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.pipeline.node_upgrade.state import State


def hold(ctx: ReconcileContext, decisions: Decisions) -> tuple[Decisions, Mapping[str, Closed]]:
    """Record where nodes hold; return the decisions without reboots that hold, and the row of each node that holds."""
    plan, option = ctx.owner.name, ctx.plan.spec.node_upgrade_option
    known, is_own_kind = continued(ctx.status.fields), is_own(ctx.status["toolkitImage"])
    points = {
        view.name: held_point(view, decision, option.pause_before, continued=known, is_own=is_own_kind)
        for view, decision in decisions.active
    }
    if nodes := ctx.status["nodeUpgradeStatuses"]:
        ctx.status["nodeUpgradeStatuses"] = with_holds(nodes, points)
    rows = {node: node_pause(node, point, plan=plan) for node, point in points.items() if point}
    whole = _plan_pause(ctx, decisions)
    rows |= {} if whole is None else {view.name: rows.get(view.name, whole) for view, _ in decisions.active}
    holds_reboot = HoldPoint.REBOOT in option.pause_before

    def held(view: NodeView, decision: Decision) -> Decision:
        if view.name not in rows:
            return with_new_job(view, decision) if is_own_kind and holds_reboot else decision
        return without_reboot(view, decision, rows[view.name]) if points[view.name] and not is_own_kind else decision

    return decisions.with_active((view, held(view, decision)) for view, decision in decisions.active), rows


def _plan_pause(ctx: ReconcileContext, decisions: Decisions) -> Closed | None:
    """Return the row of a paused plan; None if it is not paused.

    A node that has left was done all the same: a canary that is removed does not let the next node begin.
    """
    done = upgraded_names(ctx.status.fields) | {
        view.name for view, decision in decisions.active if view.is_upgraded or decision.is_done
    }
    reason, option = reason_of(ctx, done=len(done)), ctx.plan.spec.node_upgrade_option
    after = option.pause_after if reason == PAUSE_AFTER else None
    return plan_pause(ctx.owner.name, after=after) if reason else None


def where(ctx: ReconcileContext, state: State) -> str:
    """Return where the upgrade holds; empty while something of it runs."""
    whole = _plan_pause(ctx, state.decisions)
    held = held_nodes(ctx.status.fields)
    is_single, is_paused = state.single is not None, whole is not None
    return where_held(state.decisions, held=held, closed=state.closed, single=is_single, is_paused=is_paused)
