"""The waits of the pipeline: phases return waits, and finder.py runs the finders of overdue waits.

known_wait.py has the waits whose cause the pipeline knows.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from datetime import datetime


class WaitKind(Enum):
    """The kinds of waits, each with the kind of its object; the class of a wait describes the awaited condition."""

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
    LOST_HOOK = "Cluster", "hook"
    REFUSED_CORDON = "Node", "cordon"
    FORBIDDEN_STOP = "Job", "stop"
    SUSPENDED_JOB = "Job", "suspended"
    FAILING_JOB = "Job", "failing"
    REMOVED_JOB = "Job", "removal"
    CHART_JOB = "Job", "chart"
    REMOVED_DEPLOYMENT = "Deployment", "removal"
    REMOVED_SERVICE = "Service", "removal"
    REMOVED_IMAGE = "VirtualMachineImage", "removal"
    MISSING_IMAGE = "VirtualMachineImage", "missing"
    CHECKED_NODE = "Node", "check"
    CHECKED_SERVICE = "Service", "check"
    CHANGED_CLUSTER = "Cluster", "changed"
    CONTESTED_STRATEGY = "Cluster", "contested"
    AMBIGUOUS_MACHINE = "Machine", "ambiguous"
    UNAVAILABLE_NODE = "Node", "unavailable"
    HOLDING_UPGRADE = "Upgrade", "holder"
    HOLDING_MACHINE = "Machine", "holder"
    HOLDING_ADDON = "Addon", "holder"
    HOLDING_CLUSTER = "Cluster", "holder"
    UNCORDONED_NODE = "Node", "uncordoned"
    TARGET_NODE = "Node", "target"
    UNSETTLED_VM = "VirtualMachine", "unsettled"
    UNPULLED_IMAGE = "Pod", "image"
    UNREAD_REPORT = "Node", "report"
    DEPLOYED_CHART = "ManagedChart", "deployed"

    @property
    def object_kind(self) -> str:
        """The kind of the object that the wait names."""
        return str(self.value[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """One wait of a phase for one object; each kind of wait is a subclass, which its finders handle."""

    kind: ClassVar[WaitKind]
    namespace: str = ""
    name: str
    #: Empty if the wait does not concern the upgrade of one node.
    node: str = ""
    #: The start of the wait, taken from a time that survives a restart.
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
    #: Label selector of the Job's Pods, which may also select Pods of other Jobs.
    pods: str
    #: The time at which the Job's Pods were last started, or the Job's command last reported a step.
    stepped: datetime
    #: The usual seconds of such a Job between two steps, or between a start and the first step.
    expected: float = 60.0
    #: True while the Job's Pod runs, and until the Job is complete.
    is_running: bool = False
    #: The time at which the Job controller has seen the Pod's success; None before.
    succeeded: datetime | None = None
    #: The command that ends a Job that hangs; empty for a Job whose work the upgrade needs.
    way_out: str = ""
    #: Deployments of namespace cattle-system without which the Job does not end.
    controllers: tuple[str, ...] = ()

    @property
    def progressed(self) -> datetime:
        """The time of the Job's last progress."""
        return self.stepped

    @property
    def usual(self) -> float:
        """Seconds without progress that are usual for such a Job."""
        return self.expected


@dataclass(frozen=True, slots=True, kw_only=True)
class FailingJobWait(Wait):
    """A wait for the Pods of a Job that fails, since the Job controller decided that; `detail` is its reason."""

    kind = WaitKind.FAILING_JOB
    #: Label selector of the Job's Pods, as in JobWait.
    pods: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ForbiddenStopWait(Wait):
    """A wait of a Job until users' PodDisruptionBudgets let it stop VMs."""

    kind = WaitKind.FORBIDDEN_STOP
    #: Namespace and name of each VM that the Job has to stop.
    vms: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanWait(Wait):
    """A wait for the Jobs of a Plan of the system-upgrade-controller; `detail` is the Plan's unmet condition."""

    kind = WaitKind.PLAN


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositoryWait(Wait):
    """A wait for the upgrade repository; `detail` is the part of the repository that is missing."""

    #: The Deployment of the repository, in the same namespace.
    deployment: str
    #: Label selector of the repository's Pods.
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
    """A wait for Rancher, which `detail` describes, while no node is under way and no hook is pending."""

    kind = WaitKind.RANCHER
    #: The count of nodes that are done, such as "1 of 3 nodes done"; empty if Rancher is to continue with a known node.
    counted: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainWait(Wait):
    """A wait for Rancher to drain and upgrade the node of that machine-plan Secret; `detail` is Rancher's error."""

    kind = WaitKind.DRAIN
    #: The time since which no known obstacle holds the drain up.
    undisturbed: datetime
    #: True once Rancher has drained the node.
    is_drained: bool = False

    @property
    def progressed(self) -> datetime:
        """The time since which no known obstacle holds the drain up."""
        return self.undisturbed


@dataclass(frozen=True, slots=True, kw_only=True)
class EvacuationWait(Wait):
    """A wait for the VMs of a node to leave it, since its pre-drain Job began."""

    kind = WaitKind.EVACUATION
    #: The time at which the Job let KubeVirt move the VMs; until then, `since`.
    released: datetime
    #: True while the Job runs.
    is_running: bool = False
    #: True while the Job waits for volumes, before it lets the VMs leave.
    is_at_gate: bool = False
    #: True while the Job reports that it waits for the VMs to leave.
    is_evacuating: bool = False
    #: The time since which the Job waits for KubeVirt's leftover PodDisruptionBudgets; None unless it does.
    at_budgets: datetime | None = None
    #: The invalid values of VMs' annotation on-migration-failure, as the Job reports them.
    invalid_policies: str = ""

    @property
    def progressed(self) -> datetime:
        """The time at which the Job let the VMs leave."""
        return self.released


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnWait(Wait):
    """A wait for a node to be Ready with the release's OS."""

    release_os: str
    #: The release's Kubernetes if the node's is older; empty otherwise.
    release_kubernetes: str = ""
    #: The time at which the node became Ready or NotReady; `since` if the node does not report the time.
    ready_changed: datetime
    is_ready: bool = False
    #: True for a Ready node that reports another boot than before its reboot.
    has_rebooted: bool = False

    @property
    def progressed(self) -> datetime:
        """The time at which the node became Ready or NotReady."""
        return self.ready_changed


class RebootWait(ReturnWait):
    """A wait for a node to come back, after the Job that ended at `since`."""

    __slots__ = ()
    kind = WaitKind.REBOOT


class LostNodeWait(ReturnWait):
    """A wait for an upgraded node, or a node under way, that has become NotReady or runs another OS."""

    __slots__ = ()
    kind = WaitKind.LOST_NODE
