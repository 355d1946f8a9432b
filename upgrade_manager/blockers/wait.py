"""What the pipeline waits for, in terms that finders understand: phases return waits, and finder.py runs on them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from datetime import datetime


class WaitKind(Enum):
    """The kinds of waits, each with the kind of its object; the class of each says what it waits for."""

    IMAGE = "VirtualMachineImage", "import"
    JOB = "Job", ""
    PLAN = "Plan", ""
    DEPLOYMENT = "Deployment", ""
    SERVICE = "Service", ""
    RANCHER = "Cluster", ""
    DRAIN = "Secret", "drain"
    EVACUATION = "Node", "evacuation"
    REBOOT = "Node", "reboot"
    LOST_NODE = "Node", "lost"
    MISSING_NODE = "Node", "missing"
    CORDONED_NODE = "Node", "cordoned"
    PAUSED_NODE = "Node", "paused"
    FOREIGN_HOOK = "Secret", "foreign"
    LEFTOVER_HOOK = "Secret", "leftover"
    LOST_HOOK = "Node", "hook"

    @property
    def object_kind(self) -> str:
        """The kind of the object that the wait names."""
        return str(self.value[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """One wait of a phase for one object; each kind has a class, which its finders take."""

    kind: ClassVar[WaitKind]
    namespace: str = ""
    name: str
    #: The node whose upgrade waits; empty if that is not one node.
    node: str = ""
    #: When the wait began, by a time that survives a restart.
    since: datetime
    #: What the pipeline knows about it already, for the message.
    detail: str = ""

    @property
    def progressed(self) -> datetime:
        """When the awaited work last made progress; `since` for work whose progress cannot be seen."""
        return self.since

    @property
    def usual(self) -> float:
        """Seconds without progress that are usual."""
        return 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageWait(Wait):
    """For the import of the ISO."""

    kind = WaitKind.IMAGE
    #: When the percentage that `detail` has last changed.
    imported: datetime

    @property
    def progressed(self) -> datetime:
        """When the import last made progress."""
        return self.imported


@dataclass(frozen=True, slots=True, kw_only=True)
class JobWait(Wait):
    """For a Job, of the manager or of the system-upgrade-controller."""

    kind = WaitKind.JOB
    #: Label selector of its Pods, which may select those of other Jobs, too.
    pods: str
    #: When its Pods were last started, or its command last reported a step.
    stepped: datetime
    #: Seconds that such a Job may go without either.
    expected: float = 60.0
    #: True while its Pod runs, and until the Job is complete.
    is_running: bool = False

    @property
    def progressed(self) -> datetime:
        """When the Job last made progress."""
        return self.stepped

    @property
    def usual(self) -> float:
        """Seconds without progress that are usual for such a Job."""
        return self.expected


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanWait(Wait):
    """For the Jobs of a Plan of the system-upgrade-controller; `detail` is its condition that is not met."""

    kind = WaitKind.PLAN


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositoryWait(Wait):
    """For the upgrade repository; `detail` is what it lacks."""

    #: Label selector of its Pods.
    pods: str


class DeploymentWait(RepositoryWait):
    """For all replicas of the repository's Deployment."""

    __slots__ = ()
    kind = WaitKind.DEPLOYMENT


class ServiceWait(RepositoryWait):
    """For a ready endpoint of the repository's Service, or a response."""

    __slots__ = ()
    kind = WaitKind.SERVICE


@dataclass(frozen=True, slots=True, kw_only=True)
class RancherWait(Wait):
    """For Rancher to drain the next node, or to finish one; `detail` is what the pipeline waits for.

    No node is under way, and no hook is pending.
    """

    kind = WaitKind.RANCHER


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainWait(Wait):
    """For Rancher to drain a node and upgrade its Kubernetes, once its pre-drain hook is acknowledged.

    The object is the machine-plan Secret; `detail` is Rancher's error.
    """

    kind = WaitKind.DRAIN
    #: Since when nothing that is known holds the drain up.
    undisturbed: datetime
    #: True once Rancher has drained the node.
    is_drained: bool = False

    @property
    def progressed(self) -> datetime:
        """When what held the drain up was over."""
        return self.undisturbed


@dataclass(frozen=True, slots=True, kw_only=True)
class EvacuationWait(Wait):
    """For the VMs of a node to leave it, since its pre-drain Job began."""

    kind = WaitKind.EVACUATION
    #: When the Job let KubeVirt move the VMs; `since` before.
    released: datetime
    #: True while the Job runs.
    is_running: bool = False

    @property
    def progressed(self) -> datetime:
        """When the Job let the VMs leave."""
        return self.released


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnWait(Wait):
    """For a node to be Ready with the release's OS; `detail` is what it runs."""

    #: When it became Ready or NotReady; `since` if the node does not report that.
    ready_changed: datetime
    is_ready: bool = False

    @property
    def progressed(self) -> datetime:
        """When the node became Ready or NotReady."""
        return self.ready_changed


class RebootWait(ReturnWait):
    """For a node to come back, after the Job that ended at `since`."""

    __slots__ = ()
    kind = WaitKind.REBOOT


class LostNodeWait(ReturnWait):
    """For a node that was upgraded, or is under way, and is NotReady or runs another OS since then."""

    __slots__ = ()
    kind = WaitKind.LOST_NODE


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownWait(Wait):
    """For something whose cause the pipeline knows; `detail` is that cause."""

    #: What to do.
    remedy: str


class MissingNodeWait(KnownWait):
    """For a node without a Node object or without the managed label."""

    __slots__ = ()
    kind = WaitKind.MISSING_NODE


class CordonedNodeWait(KnownWait):
    """For a user to uncordon the node, which was upgraded."""

    __slots__ = ()
    kind = WaitKind.CORDONED_NODE


class PausedNodeWait(KnownWait):
    """For a user who has paused the node."""

    __slots__ = ()
    kind = WaitKind.PAUSED_NODE


class ForeignHookWait(KnownWait):
    """For other controllers to acknowledge their hooks, which `detail` names."""

    __slots__ = ()
    kind = WaitKind.FOREIGN_HOOK


class LeftoverHookWait(KnownWait):
    """For the removal of a hook that neither Rancher nor the manager processes; `detail` names its annotation."""

    __slots__ = ()
    kind = WaitKind.LEFTOVER_HOOK


class LostHookWait(KnownWait):
    """For Rancher to drain a node whose Kubernetes is the release's already: it has set no pre-drain hook."""

    __slots__ = ()
    kind = WaitKind.LOST_HOOK
