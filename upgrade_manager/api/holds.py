"""Nodes that hold before a step, until a user continues each by an entry of the annotation `continue`.

The node upgrade records in a node's status the step before which it holds (`holds`) and the steps that were continued
(`continued`); the command line and the webhook read that, and where the whole plan holds. All functions read raw
objects, for commands without pydantic; node_status.py and status.py have the models.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from upgrade_manager.api.node_states import NodeState, recorded_states, state_of
from upgrade_manager.api.phases import FAILED, PHASES, PhaseName, phase_of
from upgrade_manager.api.text import name_list

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


#: The step of our toolkit's Job in which its Pod holds before the reboot.
HOLD_STEP = "hold-before-reboot"


class HoldPoint(StrEnum):
    """A step of a node's upgrade before which it holds, a value of `spec.nodeUpgradeOption.pauseBefore`."""

    DRAIN = "Drain"
    REBOOT = "Reboot"


#: The states of a node whose Job that reboots it has begun.
_REBOOTS = frozenset({NodeState.POST_DRAINING, NodeState.WAITING_REBOOT, NodeState.SINGLE_NODE_UPGRADING})
#: The states of a node whose first Job runs, or begins again in the next attempt.
FIRST_STEPS = frozenset({NodeState.PRE_DRAINING, NodeState.SINGLE_NODE_UPGRADING})
#: By each point, the states of a node that a new hold comes too late for, and why.
_LATE = {
    HoldPoint.DRAIN: (FIRST_STEPS, "nodes that begin later"),
    HoldPoint.REBOOT: (_REBOOTS, "Jobs that begin later"),
}
#: The phases in which Jobs of nodes run; those of a plan that has failed run to their end.
_JOB_PHASES = frozenset({PhaseName.NODE_UPGRADE.active, FAILED})
#: The points before which a node holds again whose Job of that state begins again in the next attempt.
_AGAIN = {
    NodeState.PRE_DRAINING: {HoldPoint.DRAIN},
    NodeState.SINGLE_NODE_UPGRADING: {HoldPoint.DRAIN, HoldPoint.REBOOT},
    NodeState.POST_DRAINING: {HoldPoint.REBOOT},
}


def entry_of(node: str, point: str) -> str:
    """Return the entry of the annotation that continues the node at the point."""
    return f"{node}:{point}"


def continue_command(plan: str, node: str = "") -> str:
    """Return the command that lets a paused plan go on, or a node that holds."""
    return f"upgrade-manager continue {plan}{f' {node}' if node else ''}"


def read_entries(text: str) -> list[str]:
    """Return the entries of the annotation, each once, in their order."""
    return list(dict.fromkeys(entry for part in text.split(",") if (entry := part.strip())))


def held_nodes(status: Mapping[str, Any]) -> dict[str, str]:
    """Return the nodes that hold, each with its point."""
    return {name: str(entry["holds"]) for name, entry in _nodes(status) if entry.get("holds")}


def continued(status: Mapping[str, Any]) -> frozenset[str]:
    """Return the entries that were carried out."""
    return frozenset(
        entry_of(name, point)
        for name, entry in _nodes(status)
        if isinstance(points := entry.get("continued"), list)
        for point in points
    )


def with_holds(nodes: Mapping[str, Any], points: Mapping[str, str]) -> dict[str, Any]:
    """Return the nodes' entries with the point at which each holds; an empty point is that of a node that does not."""
    found = {name: (entry, points.get(name, "")) for name, entry in nodes.items()}
    return {
        name: {**{key: value for key, value in entry.items() if key != "holds"}, **({"holds": point} if point else {})}
        for name, (entry, point) in found.items()
    }


def with_continued(nodes: Mapping[str, Any], *, node: str, point: str) -> dict[str, Any]:
    """Return the nodes' entries after a user has continued the node, which holds there."""
    entry = {key: value for key, value in nodes[node].items() if key != "holds"}
    return {**nodes, node: {**entry, "continued": sorted({*entry.get("continued", []), point})}}


def held_again(entry: object) -> object:
    """Return a node's raw entry in a new attempt: it holds again before the step that the attempt may repeat."""
    if not isinstance(entry, dict) or not isinstance(points := entry.get("continued"), list):
        return entry
    state = state_of(entry.get("state"))
    left = [point for point in points if state is None or point not in _AGAIN.get(state, ())]
    kept = {key: value for key, value in entry.items() if key != "continued"}
    return {**kept, "continued": left} if left else kept


def next_point(status: Mapping[str, Any]) -> str:
    """Return where a plan that is paused now will hold, after "holds"."""
    phase = phase_of(status.get("currentPhase") or "") or PhaseName.INITIALIZE
    if phase is PhaseName.NODE_UPGRADE:
        if names := [name for name, entry in _nodes(status) if state_of(entry.get("state")) is NodeState.PRE_DRAINING]:
            return f"before the drain of {name_list(sorted(names))}"
        states = recorded_states(status)
        if not states or any(state is None or state.group <= NodeState.UPGRADE_PAUSED.group for state in states):
            return "before the next node"
    return f"before phase {PHASES[PHASES.index(phase) + 1]}"


def refusal(status: Mapping[str, Any], entry: str) -> str:
    """Return why an entry has no effect; empty for one of a node that holds there."""
    if status.get("currentPhase") == FAILED:
        return f"{entry!r} has no effect, because the plan has failed. Continue the node in the next attempt"
    held = held_nodes(status)
    if entry in {entry_of(name, point) for name, point in held.items()}:
        return ""
    node, _, point = entry.rpartition(":")
    others = ", ".join(entry_of(name, known) for name, known in held.items())
    now = f"; what holds is {others}" if others else "; no node holds"
    if not node or point not in set(HoldPoint):
        return f"{entry!r} is not NODE:{HoldPoint.DRAIN} or NODE:{HoldPoint.REBOOT}{now}"
    return f"Node {node} does not hold before its {point.lower()}{now}"


def late_holds(status: Mapping[str, Any], points: Iterable[str]) -> list[str]:
    """Return what users have to know about new points of pauseBefore: nodes whose Jobs run do not hold.

    The status does not show whether the Job of a repeated step has begun, so the text leaves it open.
    """
    if status.get("currentPhase") not in _JOB_PHASES or _nothing_runs(status):
        return []
    return [
        f"Node {name} ({state}) is not held before its {point.lower()} once its Job has begun: "
        f"pauseBefore {point} holds {held} only"
        for point, (states, held) in _LATE.items()
        if point in points
        for name, entry in _nodes(status)
        if (state := state_of(entry.get("state"))) in states and entry.get("holds") != point
    ]


def _nothing_runs(status: Mapping[str, Any]) -> bool:
    """Return True for a pause that holds; Jobs of a plan that has failed run to their end, also while it is paused."""
    return status.get("currentPhase") != FAILED and bool(status.get("holds"))


def _nodes(status: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    nodes = status.get("nodeUpgradeStatuses")
    return [(name, one) for name, one in nodes.items() if isinstance(one, dict)] if isinstance(nodes, dict) else []
