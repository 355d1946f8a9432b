"""The waits whose cause the pipeline knows: known.py has their finders, which repeat the cause.

wait.py has the other waits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from upgrade_manager.blockers.wait import Wait, WaitKind

if TYPE_CHECKING:
    from upgrade_manager.api.remedy import Remedy


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownWait(Wait):
    """A wait whose cause the pipeline knows; `detail` is the cause."""

    remedies: tuple[Remedy, ...]
    #: A predicate that several objects with this wait may share (blockers/shared_cause.py); empty for one alone.
    cause: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingNodeWait(KnownWait):
    """A wait for a node without a Node object or without the managed label."""

    kind = WaitKind.MISSING_NODE
    #: True while the manager's cache alone lacks the node, which passes by itself.
    is_passing: bool = False


class CordonedNodeWait(KnownWait):
    """A wait for a user to uncordon the node, which was upgraded."""

    __slots__ = ()
    kind = WaitKind.CORDONED_NODE


class PausedNodeWait(KnownWait):
    """A wait for a user who has paused the node."""

    __slots__ = ()
    kind = WaitKind.PAUSED_NODE


class ForeignHookWait(KnownWait):
    """A wait for other controllers to acknowledge their hooks, which `detail` names."""

    __slots__ = ()
    kind = WaitKind.FOREIGN_HOOK


class LeftoverHookWait(KnownWait):
    """A wait for a user to acknowledge a hook that neither Rancher nor the manager processes; `detail` names it."""

    __slots__ = ()
    kind = WaitKind.LEFTOVER_HOOK


@dataclass(frozen=True, slots=True, kw_only=True)
class LostHookWait(KnownWait):
    """A wait for Rancher to drain nodes that already run the release's Kubernetes, or whose drain it has forgotten."""

    kind = WaitKind.LOST_HOOK
    #: True if Rancher does not set the hooks by itself.
    is_certain: bool = False


class RefusedCordonWait(KnownWait):
    """A wait for Rancher to cordon a node, which the API server refuses."""

    __slots__ = ()
    kind = WaitKind.REFUSED_CORDON


class ChangedClusterWait(KnownWait):
    """A wait for Rancher's Cluster to request again what the manager has set."""

    __slots__ = ()
    kind = WaitKind.CHANGED_CLUSTER


class ContestedStrategyWait(KnownWait):
    """A wait for another client to leave the manager's drain hooks in Rancher's Cluster."""

    __slots__ = ()
    kind = WaitKind.CONTESTED_STRATEGY


class AmbiguousMachineWait(KnownWait):
    """A wait of a node whose Machine is being deleted, or that two Machines name."""

    __slots__ = ()
    kind = WaitKind.AMBIGUOUS_MACHINE


class UnavailableNodeWait(KnownWait):
    """A wait for another node to be Ready, before a node is drained."""

    __slots__ = ()
    kind = WaitKind.UNAVAILABLE_NODE


class HolderWait(KnownWait):
    """A wait for a holder of the cluster (facts/holders.py), before a step of the upgrade."""

    __slots__ = ()


class HoldingUpgradeWait(HolderWait):
    """A wait for Harvester's own upgrade."""

    __slots__ = ()
    kind = WaitKind.HOLDING_UPGRADE


class HoldingMachineWait(HolderWait):
    """A wait for a node that joins or leaves."""

    __slots__ = ()
    kind = WaitKind.HOLDING_MACHINE


class HoldingAddonWait(HolderWait):
    """A wait for Harvester to change an Addon, which the cluster upgrade may have caused."""

    __slots__ = ()
    kind = WaitKind.HOLDING_ADDON


class HoldingClusterWait(HolderWait):
    """A wait for Rancher to update its cluster, which the cluster upgrade may have caused."""

    __slots__ = ()
    kind = WaitKind.HOLDING_CLUSTER


class UnsettledVMWait(KnownWait):
    """A wait at the end of the upgrade for a VM that was stopped for it, and that does not run again yet."""

    __slots__ = ()
    kind = WaitKind.UNSETTLED_VM


class UncordonedNodeWait(KnownWait):
    """A wait of a node that a user has uncordoned while Rancher waits to drain it."""

    __slots__ = ()
    kind = WaitKind.UNCORDONED_NODE


class TargetNodeWait(KnownWait):
    """A wait for a cordoned node that alone could take the VMs of the node to drain."""

    __slots__ = ()
    kind = WaitKind.TARGET_NODE


class DeployedChartWait(KnownWait):
    """A wait for Fleet to deploy a changed value of Harvester's chart, before the cluster is upgraded."""

    __slots__ = ()
    kind = WaitKind.DEPLOYED_CHART


class SuspendedJobWait(KnownWait):
    """A wait for a Job that another client has suspended."""

    __slots__ = ()
    kind = WaitKind.SUSPENDED_JOB


class ChartJobWait(KnownWait):
    """A wait of some minutes at most for RKE2 to upgrade a chart."""

    __slots__ = ()
    kind = WaitKind.CHART_JOB


class RemovedJobWait(KnownWait):
    """A wait for the removal of a Job that another Job replaces."""

    __slots__ = ()
    kind = WaitKind.REMOVED_JOB


class RemovedDeploymentWait(KnownWait):
    """A wait for the removal of the upgrade repository of a plan that has ended."""

    __slots__ = ()
    kind = WaitKind.REMOVED_DEPLOYMENT


class RemovedServiceWait(KnownWait):
    """A wait for the removal of the repository's Service of a plan that has ended."""

    __slots__ = ()
    kind = WaitKind.REMOVED_SERVICE


class RemovedImageWait(KnownWait):
    """A wait for the removal of the ISO's image of a plan that has ended."""

    __slots__ = ()
    kind = WaitKind.REMOVED_IMAGE


class MissingImageWait(KnownWait):
    """A wait for a user who creates the image that the plan names."""

    __slots__ = ()
    kind = WaitKind.MISSING_IMAGE


class UnpulledImageWait(KnownWait):
    """A wait for the image of a Pod whose node neither has it nor can pull it."""

    __slots__ = ()
    kind = WaitKind.UNPULLED_IMAGE


class UnreadReportWait(KnownWait):
    """A wait for the report of a node whose survey has ended without one."""

    __slots__ = ()
    kind = WaitKind.UNREAD_REPORT


class CheckedNodeWait(KnownWait):
    """A wait for the kubelet of a node to respond before the upgrade; the check itself ends and fails the plan."""

    __slots__ = ()
    kind = WaitKind.CHECKED_NODE


class CheckedServiceWait(KnownWait):
    """A wait for the API servers to respond before the upgrade; the check itself ends and fails the plan."""

    __slots__ = ()
    kind = WaitKind.CHECKED_SERVICE
