"""The share of an upgrade that is done, from its raw status: for metrics and displays.

pipeline/movement.py exports it, display/view.py shows it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from upgrade_manager.api.node_states import NodeState, recorded_states
from upgrade_manager.api.phases import PHASES, SUCCEEDED, PhaseName, recorded_phases, skipped_phases

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

#: The share of a node's upgrade, by the group of its state; states before these have none.
STEPS: Mapping[int, float] = {
    NodeState.PRE_DRAINING.group: 0.1,
    NodeState.PRE_DRAINED.group: 0.3,
    NodeState.POST_DRAINING.group: 0.5,
    NodeState.WAITING_REBOOT.group: 0.8,
    NodeState.POST_DRAIN_FAILED.group: 0.8,
}


def progress_ratio(status: Mapping[str, Any]) -> float:
    """Return 0 to 1; 1 only if the plan has succeeded. A failed plan keeps what it had reached."""
    if status.get("currentPhase") == SUCCEEDED:
        return 1.0
    recorded = frozenset(recorded_phases(status))
    known = [state for state in recorded_states(status) if state is not None]
    done = {phase for phase in PHASES if phase.completed in recorded} | skipped_phases(recorded)
    return sum(phase.spec.weight * (1.0 if phase in done else _share(phase, recorded, known)) for phase in PHASES)


def _share(phase: PhaseName, recorded: Collection[Any], nodes: Collection[NodeState]) -> float:
    if phase.active not in recorded or not nodes:
        return 0.0
    count = NODE_SHARES.get(phase)
    return count(nodes) if count is not None else 0.0


def _preloaded(nodes: Collection[NodeState]) -> float:
    """Return the share of the nodes known so far; the others are not recorded until their Jobs start."""
    done = sum(state is not NodeState.IMAGE_PRELOADING for state in nodes)
    return done / (done + max(1, len(nodes) - done))


def _upgraded(nodes: Collection[NodeState]) -> float:
    return sum(1.0 if state.upgraded else STEPS.get(state.group, 0.0) for state in nodes) / len(nodes)


def _cleaned(nodes: Collection[NodeState]) -> float:
    return sum(state is NodeState.IMAGE_CLEANED for state in nodes) / len(nodes)


#: The share that is done of each phase that works on the nodes, from the states of one node or more.
NODE_SHARES: Mapping[PhaseName, Callable[[Collection[NodeState]], float]] = {
    PhaseName.IMAGE_PRELOAD: _preloaded,
    PhaseName.NODE_UPGRADE: _upgraded,
    PhaseName.IMAGE_CLEANUP: _cleaned,
}
