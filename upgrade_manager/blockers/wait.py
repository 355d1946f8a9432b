"""The waits of the pipeline, as finders of blockers read them: phases return them, and finder.py runs on them."""

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
    #: The begin of the wait, by a time that survives a restart.
    since: datetime
    #: The pipeline's own description of the wait, for the message.
    detail: str = ""

    @property
    def progressed(self) -> datetime:
        """The last progress of the awaited work; `since` for work whose progress cannot be seen."""
        return self.since

    @property
    def usual(self) -> float:
        """Seconds without progress that are usual."""
        return 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageWait(Wait):
    """A wait for the import of the ISO."""

    kind = WaitKind.IMAGE
    #: The time at which the percentage in `detail` changed last.
    imported: datetime

    @property
    def progressed(self) -> datetime:
        """The time of the import's last progress."""
        return self.imported


@dataclass(frozen=True, slots=True, kw_only=True)
class JobWait(Wait):
    """A wait for a Job, of the manager or of the system-upgrade-controller."""

    kind = WaitKind.JOB
    #: Label selector of its Pods, which may select those of other Jobs, too.
    pods: str
    #: The time at which its Pods were last started, or its command last reported a step.
    stepped: datetime
    #: Seconds that such a Job may go without either.
    expected: float = 60.0
    #: True while its Pod runs, and until the Job is complete.
    is_running: bool = False

    @property
    def progressed(self) -> datetime:
        """The time of the Job's last progress."""
        return self.stepped

    @property
    def usual(self) -> float:
        """Seconds without progress that are usual for such a Job."""
        return self.expected


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanWait(Wait):
    """A wait for the Jobs of a Plan of the system-upgrade-controller; `detail` is its condition that is not met."""

    kind = WaitKind.PLAN


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositoryWait(Wait):
    """A wait for the upgrade repository; `detail` is what it lacks."""

    #: Label selector of its Pods.
    pods: str


class DeploymentWait(RepositoryWait):
    """A wait for all replicas of the repository's Deployment."""

    __slots__ = ()
    kind = WaitKind.DEPLOYMENT


class ServiceWait(RepositoryWait):
    """A wait for a ready endpoint of the repository's Service, or a response."""

    __slots__ = ()
    kind = WaitKind.SERVICE


@dataclass(frozen=True, slots=True, kw_only=True)
class RancherWait(Wait):
    """A wait for Rancher to drain the next node, or to finish one; `detail` is what the pipeline waits for.

    No node is under way, and no hook is pending.
    """

    kind = WaitKind.RANCHER


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainWait(Wait):
    """A wait for Rancher to drain a node and upgrade its Kubernetes, once its pre-drain hook is acknowledged.

    The object is the machine-plan Secret; `detail` is Rancher's error.
    """

    kind = WaitKind.DRAIN
    #: Since when nothing that is known holds the drain up.
    undisturbed: datetime
    #: True once Rancher has drained the node.
    is_drained: bool = False

    @property
    def progressed(self) -> datetime:
        """The time since which nothing known holds the drain up."""
        return self.undisturbed


@dataclass(frozen=True, slots=True, kw_only=True)
class EvacuationWait(Wait):
    """A wait for the VMs of a node to leave it, since its pre-drain Job began."""

    kind = WaitKind.EVACUATION
    #: The time at which the Job let KubeVirt move the VMs; `since` before.
    released: datetime
    #: True while the Job runs.
    is_running: bool = False
    #: True while the Job waits for volumes, before it lets the VMs leave.
    is_at_gate: bool = False

    @property
    def progressed(self) -> datetime:
        """The time at which the Job let the VMs leave."""
        return self.released


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnWait(Wait):
    """A wait for a node to be Ready with the release's OS; `detail` is what it runs."""

    #: The time at which it became Ready or NotReady; `since` if the node does not report that.
    ready_changed: datetime
    is_ready: bool = False

    @property
    def progressed(self) -> datetime:
        """The time at which the node became Ready or NotReady."""
        return self.ready_changed


class RebootWait(ReturnWait):
    """A wait for a node to come back, after the Job that ended at `since`."""

    __slots__ = ()
    kind = WaitKind.REBOOT


class LostNodeWait(ReturnWait):
    """A wait for a node that was upgraded, or is under way, and is NotReady or runs another OS since then."""

    __slots__ = ()
    kind = WaitKind.LOST_NODE


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownWait(Wait):
    """A wait for something whose cause the pipeline knows; `detail` is that cause."""

    #: The remedy.
    remedy: str


class MissingNodeWait(KnownWait):
    """A wait for a node without a Node object or without the managed label."""

    __slots__ = ()
    kind = WaitKind.MISSING_NODE


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
    """A wait for the removal of a hook that neither Rancher nor the manager processes; `detail` names it."""

    __slots__ = ()
    kind = WaitKind.LEFTOVER_HOOK


class LostHookWait(KnownWait):
    """A wait for Rancher to drain a node whose Kubernetes is the release's already: it has set no pre-drain hook."""

    __slots__ = ()
    kind = WaitKind.LOST_HOOK
