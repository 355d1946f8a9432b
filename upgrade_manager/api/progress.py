"""The share of an upgrade that is done, from its raw status: for metrics and displays.

pipeline/movement.py exports it, display/view.py shows it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from upgrade_manager.api.node_states import NodeState, state_of
from upgrade_manager.api.phases import PHASES, SUCCEEDED, PhaseName

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

#: The share of each phase in an upgrade; the rest is the end, so that only a plan that has succeeded is complete.
WEIGHTS: Mapping[PhaseName, float] = {
    PhaseName.INITIALIZE: 0.01,
    PhaseName.ISO_DOWNLOAD: 0.09,
    PhaseName.REPO_CREATE: 0.02,
    PhaseName.METADATA_POPULATE: 0.01,
    PhaseName.IMAGE_PRELOAD: 0.15,
    PhaseName.CLUSTER_UPGRADE: 0.20,
    PhaseName.NODE_UPGRADE: 0.45,
    PhaseName.IMAGE_CLEANUP: 0.06,
}
#: The share of a node's upgrade, by the group of its state.
_STEPS: Mapping[int, float] = {
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
    recorded = {entry.get("phase") for entry in status.get("phaseTransitionTimestamps") or []}
    states = [state_of((entry or {}).get("state")) for entry in (status.get("nodeUpgradeStatuses") or {}).values()]
    known = [state for state in states if state is not None]
    return sum(WEIGHTS[phase] * _share(phase, recorded, known) for phase in PHASES)


def _share(phase: PhaseName, recorded: Collection[Any], nodes: Collection[NodeState]) -> float:
    if phase.completed in recorded:
        return 1.0
    if phase.active not in recorded or not nodes:
        return 0.0
    if phase is PhaseName.IMAGE_PRELOAD:
        return _preloaded(nodes)
    if phase is PhaseName.NODE_UPGRADE:
        return sum(map(_upgraded, nodes)) / len(nodes)
    if phase is PhaseName.IMAGE_CLEANUP:
        return sum(state is NodeState.IMAGE_CLEANED for state in nodes) / len(nodes)
    return 0.0


def _preloaded(nodes: Collection[NodeState]) -> float:
    """Return the share of the nodes known so far; the others are not recorded until their Jobs start."""
    done = sum(state is not NodeState.IMAGE_PRELOADING for state in nodes)
    return done / (done + max(1, len(nodes) - done))


def _upgraded(state: NodeState) -> float:
    return 1.0 if state.upgraded else _STEPS.get(state.group, 0.0)
