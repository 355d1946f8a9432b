"""The states of a node during an upgrade, which only go forward."""

from __future__ import annotations

from enum import StrEnum


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
        """How far the state is, 0 to 9; states of one group are alternatives to each other."""
        return _GROUP[self]

    @property
    def upgraded(self) -> bool:
        """Whether the node runs the new release, whatever has been cleaned up since."""
        return self not in _FATAL and self.group >= NodeState.POST_DRAINED.group


_GROUPS: tuple[tuple[NodeState, ...], ...] = (
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
_GROUP = {state: index for index, group in enumerate(_GROUPS) for state in group}
_STATES = {state.value: state for state in NodeState}
_FATAL = frozenset({NodeState.PRE_DRAIN_FAILED, NodeState.POST_DRAIN_FAILED, NodeState.SINGLE_NODE_UPGRADE_FAILED})


def state_of(value: object) -> NodeState | None:
    """The state of that name; None for an empty one, for one that only a newer version knows, and for no text."""
    return _STATES.get(value) if isinstance(value, str) else None


def merge(old: str | None, new: NodeState) -> str:
    """The state after `new` was observed on a node that had `old`.

    Only a higher group replaces a state: within a group the first verdict stands, since observations may arrive late
    and in any order. A state that we do not know stays as it is, because a newer version wrote it and its place in
    the order is unknown. None and the empty text stand for a node without a state.
    """
    if not old:
        return new
    known = state_of(old)
    if known is None:
        return old
    return new if new.group > known.group else known
