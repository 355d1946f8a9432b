"""One node at a time, whatever Rancher asks.

Rancher counts unavailable machines per role only, and a question that an upgrade which failed has left open is still
there when the next one begins. Two nodes that are away together can cost a cluster of three its quorum, so a node whose
turn it is not waits until the other one is back.

The order is Rancher's: it finishes one tier of machines before it turns to the next. A node of a later one with such an
old question would be drained, and Rancher would not come to it before the others are done, which wait for it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from upgrade_manager.api.node_states import NodeState
from upgrade_manager.nodes.effects import ResumeJob, StartJob

if TYPE_CHECKING:
    from collections.abc import Iterable

    from upgrade_manager.nodes.decision import Decision
    from upgrade_manager.nodes.model import NodeView

#: From the first Job to the return from the reboot.
UNDER_WAY = frozenset(
    {NodeState.PRE_DRAINING, NodeState.PRE_DRAINED, NodeState.POST_DRAINING, NodeState.WAITING_REBOOT}
)


def in_turn(decisions: Iterable[tuple[NodeView, Decision]]) -> list[tuple[NodeView, Decision]]:
    """The same decisions, less the starts that would take a second node away; in the order given."""
    pairs = list(decisions)
    # What is seen now counts, not what was recorded: a node that has just come back holds up nobody any more.
    busy = [view.name for view, decision in pairs if _state(view, decision) in UNDER_WAY]
    result = []
    for view, decision in pairs:
        if not _starts(decision):
            result.append((view, decision))
            continue
        is_held = decision.state is NodeState.UPGRADE_PAUSED
        other = next((name for name in busy if name != view.name), "") or _earlier(view, pairs)
        if other:
            waits = f"node {other} to be done before node {view.name}"
            result.append((view, replace(decision, state=None, effects=(), waits_for=waits)))
        else:
            # A node that is held back is not away: the others may go on.
            busy += [] if is_held else [view.name]
            result.append((view, decision))
    return result


def _earlier(view: NodeView, pairs: Iterable[tuple[NodeView, Decision]]) -> str:
    """A node to which Rancher turns before it turns to this one, whose question is no proof that it has."""
    if not view.left_over or view.tier is None or view.state in UNDER_WAY:
        return ""
    before = (other for other, decision in pairs if _is_before(other, view.tier) and not _is_done(other, decision))
    return next((other.name for other in before), "")


def _is_before(view: NodeView, tier: int) -> bool:
    return view.tier is not None and view.tier < tier


def _is_done(view: NodeView, decision: Decision) -> bool:
    state = decision.state or view.state
    return state is not None and state.upgraded


def _starts(decision: Decision) -> bool:
    return bool(decision.effects) and any(isinstance(effect, StartJob | ResumeJob) for effect in decision.effects)


def _state(view: NodeView, decision: Decision) -> NodeState | None:
    """Where the node is before anything is started: its Job's start is no reason to hold the others up yet."""
    return view.state if decision.state is None or _starts(decision) else decision.state
