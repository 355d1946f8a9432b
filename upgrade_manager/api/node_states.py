"""States of a node during an upgrade. Nodes move forward only."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from upgrade_manager.api.timestamps import format_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime


class NodeState(StrEnum):
    """A value of `status.nodeUpgradeStatuses[node].state`."""

    IMAGE_PRELOADING = "ImagePreloading"
    IMAGE_PRELOADED = "ImagePreloaded"
    IMAGE_PRELOAD_FAILED = "ImagePreloadFailed"
    UPGRADE_PAUSED = "UpgradePaused"
    PRE_DRAINING = "PreDraining"
    SINGLE_NODE_UPGRADING = "SingleNodeUpgrading"
    PRE_DRAINED = "PreDrained"
    PRE_DRAIN_FAILED = "PreDrainFailed"
    POST_DRAINING = "PostDraining"
    WAITING_REBOOT = "WaitingReboot"
    POST_DRAINED = "PostDrained"
    POST_DRAIN_FAILED = "PostDrainFailed"
    SINGLE_NODE_UPGRADED = "SingleNodeUpgraded"
    SINGLE_NODE_UPGRADE_FAILED = "SingleNodeUpgradeFailed"
    IMAGE_CLEANING = "ImageCleaning"
    IMAGE_CLEANED = "ImageCleaned"
    IMAGE_CLEAN_FAILED = "ImageCleanFailed"

    @property
    def group(self) -> int:
        """Position in the order, 0 to 9; states of one group are alternatives."""
        return _GROUP[self]

    @property
    def upgraded(self) -> bool:
        """True if the node runs the new release."""
        return self in _UPGRADED

    @property
    def failed(self) -> bool:
        """True if its upgrade failed, which a new attempt repeats."""
        return self in _FATAL


#: In the order of an upgrade.
GROUPS: tuple[tuple[NodeState, ...], ...] = (
    (NodeState.IMAGE_PRELOADING,),
    (NodeState.IMAGE_PRELOADED, NodeState.IMAGE_PRELOAD_FAILED),
    (NodeState.UPGRADE_PAUSED,),
    (NodeState.PRE_DRAINING, NodeState.SINGLE_NODE_UPGRADING),
    (NodeState.PRE_DRAINED, NodeState.PRE_DRAIN_FAILED),
    (NodeState.POST_DRAINING,),
    (NodeState.WAITING_REBOOT,),
    (
        NodeState.POST_DRAINED,
        NodeState.POST_DRAIN_FAILED,
        NodeState.SINGLE_NODE_UPGRADED,
        NodeState.SINGLE_NODE_UPGRADE_FAILED,
    ),
    (NodeState.IMAGE_CLEANING,),
    (NodeState.IMAGE_CLEANED, NodeState.IMAGE_CLEAN_FAILED),
)
_GROUP = {state: index for index, group in enumerate(GROUPS) for state in group}
_STATES = {state.value: state for state in NodeState}
_FATAL = frozenset({NodeState.PRE_DRAIN_FAILED, NodeState.POST_DRAIN_FAILED, NodeState.SINGLE_NODE_UPGRADE_FAILED})
_UPGRADED = frozenset(state for state in NodeState if state.group >= NodeState.POST_DRAINED.group) - _FATAL


#: The only way back: by the state in which a node failed, that in which its Job runs again.
_AGAIN = {
    NodeState.IMAGE_PRELOAD_FAILED: NodeState.IMAGE_PRELOADING,
    NodeState.PRE_DRAIN_FAILED: NodeState.PRE_DRAINING,
    NodeState.POST_DRAIN_FAILED: NodeState.POST_DRAINING,
    NodeState.SINGLE_NODE_UPGRADE_FAILED: NodeState.SINGLE_NODE_UPGRADING,
}


def resumed_entry(entry: object, *, now: datetime) -> object:
    """Return the raw entry of a node in a new attempt of its plan: a node that has failed goes back to its Job."""
    state = state_of(entry.get("state")) if isinstance(entry, dict) else None
    if not isinstance(entry, dict) or state not in _AGAIN:
        return entry
    # A step that is repeated holds again.
    dropped = {"reason", "message", "holds", "continued"}
    kept = {key: value for key, value in entry.items() if key not in dropped}
    return {**kept, "state": str(_AGAIN[state]), "since": format_time(now)}


def state_of(value: object) -> NodeState | None:
    """Return the state of that name; None if it is empty, unknown or not a string."""
    return _STATES.get(value) if isinstance(value, str) else None


def is_in(entry: Mapping[str, Any] | None, states: frozenset[NodeState]) -> bool:
    """Return True if the raw entry of a node has one of the states.

    Texts are compared, because a write of the status and a reconcile read the states of a thousand nodes.
    """
    return entry is not None and entry.get("state") in states


def recorded_states(status: Mapping[str, Any]) -> list[NodeState | None]:
    """Return the states of all nodes in a raw status; None for an empty or unknown one."""
    return [state_of((entry or {}).get("state")) for entry in _entries(status)]


def _entries(status: Mapping[str, Any]) -> Iterable[dict[str, Any] | None]:
    return (status.get("nodeUpgradeStatuses") or {}).values()


def started_nodes(status: Mapping[str, Any]) -> dict[str, NodeState]:
    """Return the nodes whose upgrade has started, which can no longer be paused, with their states in a raw status."""
    entries = status.get("nodeUpgradeStatuses")
    known = entries if isinstance(entries, dict) else {}
    states = {name: state_of(entry.get("state")) for name, entry in known.items() if isinstance(entry, dict)}
    paused = NodeState.UPGRADE_PAUSED.group
    return {name: state for name, state in states.items() if state is not None and state.group > paused}


def late_pauses(status: Mapping[str, Any], names: Iterable[str]) -> dict[str, str]:
    """Return what users have to know about the pauses, of these nodes, that come after the start of the upgrade."""
    entries = status.get("nodeUpgradeStatuses")
    named = {name: entries[name] for name in names if name in entries} if isinstance(entries, dict) else {}
    return {name: late_pause(name, state) for name, state in started_nodes({"nodeUpgradeStatuses": named}).items()}


def late_pause(name: str, state: NodeState) -> str:
    """Return what users have to know about a pause that comes after the start of the node's upgrade."""
    why = "it is upgraded already" if state.upgraded else f"its upgrade has started ({state})"
    return f"Node {name} is in pauseNodes and is not paused: {why}"


def upgraded_names(status: Mapping[str, Any]) -> set[str]:
    """Return the names of the nodes in a raw status that run the new release."""
    return {name for name, state in started_nodes(status).items() if state.upgraded}


def upgraded_nodes(status: Mapping[str, Any]) -> int:
    """Return the number of nodes that run the new release; a node that has left before is none."""
    return sum(is_in(entry, _UPGRADED) for entry in _entries(status))


def merge(old: str | None, new: NodeState) -> str:
    """Return the state after `new` was observed on a node in state `old`.

    Only a higher group replaces a state, because observations may arrive late and in any order. An unknown state was
    written by a newer version and is kept.
    """
    if not old:
        return new
    known = state_of(old)
    if known is None:
        return old
    return new if new.group > known.group else known


def node_entry(old: object, state: NodeState, *, now: datetime, reason: str = "", message: str = "") -> dict[str, Any]:
    """Merge an observed state into the raw entry of a node, forward only; a new state has the time.

    Reason and message belong to their state: they are replaced when the state is set or confirmed, and kept when the
    old state wins. Unknown fields are kept.
    """
    entry = dict(old) if isinstance(old, dict) else {}
    current = entry.get("state")
    merged = merge(current if isinstance(current, str) else None, state)
    if merged != state:
        return entry
    if merged != current:
        entry["since"] = format_time(now)
    entry["state"] = merged
    for key, text in (("reason", reason), ("message", message)):
        if text:
            entry[key] = text
        else:
            entry.pop(key, None)
    return entry
