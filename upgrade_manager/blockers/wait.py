"""What the pipeline waits for, in terms that finders understand."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime


class WaitKind(Enum):
    """The kinds of waits, each with the kind of its object: finders are rows for one of them."""

    #: For the import of the ISO. `progressed` is when its progress last changed, `detail` what it is.
    IMAGE = "VirtualMachineImage", "import"
    #: For a Job, of the manager or of the system-upgrade-controller.
    JOB = "Job", ""
    #: For the Jobs of a Plan of the system-upgrade-controller.
    PLAN = "Plan", ""
    #: For all replicas of the upgrade repository's Deployment.
    DEPLOYMENT = "Deployment", ""
    #: For a ready endpoint of the upgrade repository's Service, or a response.
    SERVICE = "Service", ""
    #: For Rancher to drain the next node, or to finish one: no node is under way, and no hook is pending.
    RANCHER = "Cluster", ""
    #: For Rancher to drain a node and upgrade its Kubernetes, once its pre-drain hook is acknowledged: the Secret.
    #: `detail` is Rancher's error, `is_running` is True once the node is drained, `progressed` is when what held the
    #: drain up was over.
    DRAIN = "Secret", "drain"
    #: For the VMs of a node to leave; `is_running` while the pre-drain Job runs, which lets them leave at `progressed`.
    EVACUATION = "Node", "evacuation"
    #: For a node to come back, after the Job that ended at `since`; `detail` says what it runs. `progressed` is when it
    #: became Ready or NotReady, `is_running` is True while it is Ready.
    REBOOT = "Node", "reboot"
    #: For a node that was upgraded, and is NotReady or runs another OS since then; like REBOOT.
    LOST_NODE = "Node", "lost"
    #: For a node without a Node object or without the managed label; `detail` says what is missing, and what to do.
    MISSING_NODE = "Node", "missing"
    #: For a user to uncordon the node, which was upgraded.
    CORDONED_NODE = "Node", "cordoned"
    #: For a user who has paused the node.
    PAUSED_NODE = "Node", "paused"
    #: For other controllers to acknowledge their hooks, which `detail` names.
    FOREIGN_HOOK = "Secret", "foreign"
    #: For the removal of a hook that neither Rancher nor the manager processes; `detail` names its annotation.
    LEFTOVER_HOOK = "Secret", "leftover"
    #: For the drain of a node that runs the release's Kubernetes, which is in `detail`, without one.
    LOST_HOOK = "Node", "hook"

    @property
    def object_kind(self) -> str:
        """The kind of the object that the wait names."""
        return str(self.value[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """One wait of a phase for one object."""

    kind: WaitKind
    namespace: str
    name: str
    #: The node whose upgrade waits; empty if that is not one node.
    node: str = ""
    #: When the wait began, by a time that survives a restart.
    since: datetime
    #: When the awaited work last made progress; `since` for work whose progress cannot be seen.
    progressed: datetime
    #: Seconds without progress that are usual.
    usual: float = 60.0
    #: Label selector of its Pods; empty where it has none.
    pods: str = ""
    #: What the pipeline knows about it already, for the message.
    detail: str = ""
    #: What to do, if the pipeline knows it.
    remedy: str = ""
    #: True once the work runs.
    is_running: bool = False
