"""The input of decisions (`NodeView`), their results (`Decision`) and their effects, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from upgrade_manager.api.keys import ANNOTATION_POST_HOOK, ANNOTATION_PRE_HOOK, JobType
from upgrade_manager.facts.machine_plan import NO_HOOK, Hook

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from upgrade_manager.api.node_states import NodeState
    from upgrade_manager.api.remedy import Remedy
    from upgrade_manager.facts.job_state import JobState


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """The record of a node's requests, in the node's status entry."""

    #: The number of the latest hook that was seen.
    seen: int = 0
    #: The number of hooks that were acknowledged, by the manager or by others, or withdrawn.
    acknowledged: int = 0
    #: The generation of the Cluster when the latest hook was seen first.
    generation: int = 0
    #: The Secret's resourceVersion before the manager's latest acknowledgement.
    secret_version: str = ""
    #: The number of the request whose post-drain Job is complete.
    rebooted: int = 0
    #: The number of the request whose node was uncordoned after its drain, so that VMs may be back.
    uncordoned: int = 0

    @classmethod
    def read(cls, entry: Mapping[str, Any]) -> Requests:
        """Read the member `drain` of the status entry; an entry of an earlier version has none."""
        values = entry.get("drain")
        if not values or not isinstance(values, dict):
            # Fast path: most of a thousand nodes have no request yet.
            return NO_REQUESTS
        numbers = {name: values.get(name) for name in ("seen", "acknowledged", "generation", "rebooted", "uncordoned")}
        counts = {name: number for name, number in numbers.items() if isinstance(number, int) and number > 0}
        version = values.get("secretVersion")
        return cls(**counts, secret_version=version if isinstance(version, str) else "")

    def entry(self) -> dict[str, Any]:
        """Return the member `drain` of the status entry; empty without a request."""
        values = {
            "seen": self.seen,
            "acknowledged": self.acknowledged,
            "generation": self.generation,
            "secretVersion": self.secret_version,
            "rebooted": self.rebooted,
            "uncordoned": self.uncordoned,
        }
        return {key: value for key, value in values.items() if value}


#: The record of a node that Rancher has not drained.
NO_REQUESTS = Requests()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """Everything observed about one node: from the plan, its Node, its machine-plan Secret and its Jobs."""

    name: str
    state: NodeState | None
    os_image: str
    ready: bool
    #: The time at which the node became Ready or NotReady; empty if unknown.
    ready_since: str = ""
    #: True while the node is unschedulable.
    cordoned: bool = False
    #: True while the node has the taint by which the pre-drain Job moves VMs away.
    tainted: bool = False
    #: The id of the boot that the node's kubelet reports; empty if unknown.
    boot_id: str = ""
    #: The node's annotation pendingOSImage; empty without the annotation.
    pending_os: str
    #: The machine-plan Secret; empty for a node that Rancher does not manage (yet).
    secret: str = ""
    #: True from the begin of Rancher's drain until Rancher has removed all annotations of the drain.
    drains: bool = True
    #: True while Rancher drains the node, or has drained it, and waits for no pre-drain hook of the manager.
    under_way: bool = False
    #: Rancher's error while it cannot cordon the node, so that it sets no hook; empty otherwise.
    cordon_error: str = ""
    #: True for a Node that was created after the phase began, such as that of a reinstalled host.
    reinstalled: bool = False
    pre_drain: Hook = NO_HOOK
    post_drain: Hook = NO_HOOK
    #: The Jobs that answer the present request, or take part in no drain.
    jobs: dict[JobType, JobState]
    #: The Jobs of earlier requests, which are removed before new ones are created.
    old_jobs: dict[JobType, JobState] = field(default_factory=dict)
    #: The number of Rancher's latest request to drain the node in this plan, 0 before the first, and its id in labels.
    request_number: int = 1
    request: str = ""
    #: The record of the node's requests, and True if it must be written before other steps.
    requests: Requests = field(default_factory=Requests)
    is_used_up: bool = False
    #: True if the manager itself has acknowledged the pre-drain hook of the present request.
    has_passed: bool = False
    #: The Secret's counter, and the Secret's resourceVersion.
    counted: str = ""
    secret_version: str = ""
    #: The release's Kubernetes while the node's is older; empty otherwise.
    kubernetes_wanted: str = ""
    #: True if an earlier upgrade has begun to drain the node.
    stale_hook: bool = False
    #: True while a drain with hooks for the manager has begun.
    has_begun_drain: bool = False
    #: The Machine that the node's machine-plan Secret belongs to; empty without such a Secret.
    machine: str = ""
    #: A clause about the Machine, as "it", for which the node must not be drained; empty without an obstacle.
    machine_problem: str = ""
    #: The remedies for it.
    machine_ways_out: tuple[Remedy, ...] = ()
    #: Rancher's message if it cannot apply the Machine's plan; empty otherwise.
    plan_error: str = ""
    #: True for a witness node, which runs no VMs.
    is_witness: bool = False
    #: The version that the node's kubelet reports.
    kubelet: str = ""
    #: Rancher upgrades lower tiers first; None for a machine without a role.
    tier: int | None = None
    #: True if pauseNodes lists the node.
    paused: bool = False
    #: True if the node's VMs are started again after the node's upgrade.
    restore_vms: bool = False

    @property
    def kubernetes_outdated(self) -> bool:
        """True while the node's Kubernetes is older than the release's."""
        return bool(self.kubernetes_wanted)

    @property
    def may_be_acknowledged(self) -> bool:
        """True if the acknowledgement of the pre-drain hook is recorded, and the cache may not show it yet."""
        return self.pre_drain.pending and 0 < self.request_number <= self.requests.acknowledged

    @property
    def is_upgraded(self) -> bool:
        """True for a node that is recorded as done, by the node upgrade or with a state of the image clean-up."""
        return self.state is not None and self.state.upgraded

    @property
    def is_held(self) -> bool:
        """True for a node that an earlier upgrade has left cordoned, by the rule of machine_plan.held_nodes."""
        return self.cordoned and self.stale_hook and self.has_begun_drain

    @property
    def is_upgraded_at_hook(self) -> bool:
        """True for a node that runs the release's Kubernetes while its pre-drain hook is pending."""
        return self.pre_drain.pending and not (self.kubernetes_outdated or self.is_upgraded or self.reinstalled)

    @property
    def was_drained(self) -> bool:
        """True for a node that Rancher has drained and not uncordoned yet, so that no VMs have to leave it."""
        return self.cordoned and bool(self.post_drain.requested)

    @property
    def os_upgrade(self) -> JobState | None:
        """The Job that upgrades the node's operating system and reboots the node; None before the Job exists."""
        return self.jobs.get(JobType.SINGLE_NODE_UPGRADE) or self.jobs.get(JobType.POST_DRAIN)

    @property
    def has_rebooted(self) -> bool:
        """True for a node that has become Ready after its Job, in another boot than the Job began in.

        A kubelet that restarts becomes Ready in the same boot. A Job of an earlier version has not recorded the boot.
        """
        job = self.os_upgrade
        if job is None or not self.ready or not "" < job.completed < self.ready_since:
            return False
        return "" not in {job.boot_id, self.boot_id} and job.boot_id != self.boot_id


@dataclass(frozen=True, slots=True, kw_only=True)
class StartJob:
    """Create the node's Job of that type, unless it exists."""

    node: str
    job_type: JobType
    suspended: bool = False
    #: True for a hook that Rancher set again on an upgraded node.
    repeated: bool = False
    #: The request that the Job answers.
    request: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveJob:
    """Delete the node's Job of that type, or the one of an earlier request, because another Job replaces it."""

    node: str
    job_type: JobType


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeJob:
    """Resume the node's suspended Job of that type."""

    node: str
    job_type: JobType


@dataclass(frozen=True, slots=True, kw_only=True)
class AcknowledgeHook:
    """Copy Rancher's value, byte for byte, to the manager's annotation on the machine-plan Secret."""

    secret: str
    annotation: str
    value: str
    #: The number of the request; 0 for a post-drain hook, which belongs to the request of its pre-drain hook.
    number: int = 0
    #: The counter that the Secret has before, and the acknowledgement of a pre-drain hook; empty without them.
    counted: str = ""
    acknowledged: str = ""

    @classmethod
    def of_drain(cls, view: NodeView) -> AcknowledgeHook:
        """Return the acknowledgement of the node's pre-drain hook, with the request that it answers."""
        return cls(
            secret=view.secret,
            annotation=ANNOTATION_PRE_HOOK,
            value=view.pre_drain.requested,
            number=view.request_number,
            counted=view.counted,
            acknowledged=view.pre_drain.acknowledged,
        )

    @classmethod
    def of_return(cls, view: NodeView) -> AcknowledgeHook:
        """Return the acknowledgement of the node's post-drain hook."""
        value = view.post_drain.requested
        return cls(secret=view.secret, annotation=ANNOTATION_POST_HOOK, value=value, counted=view.counted)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPendingOS:
    """Annotate the Node with the OS that it will report after its reboot."""

    node: str
    os_image: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearPendingOS:
    """Remove the annotation of `SetPendingOS`."""

    node: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveTaint:
    """Let KubeVirt place VMs on the node again."""

    node: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreVMs:
    """Restart the VMs that were shut down for the node's upgrade, if any are listed."""

    node: str


#: Effects are data, so that decisions stay pure; each effect is idempotent.
Effect = StartJob | RemoveJob | ResumeJob | AcknowledgeHook | SetPendingOS | ClearPendingOS | RemoveTaint | RestoreVMs


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The state of a node, and the effects that are due."""

    #: The node's new state; None until Rancher has reached the node.
    state: NodeState | None
    #: The node's part of the plan's Progressing condition; empty if the node does not wait.
    progress: str = ""
    effects: tuple[Effect, ...] = ()
    #: The message in the node's status entry; empty without a problem.
    message: str = ""
    #: The cause of the node's failure; empty without a failure.
    failure: str = ""
    #: True while the node holds the phase, whatever its state is.
    holds: bool = False
    #: True if Rancher has forgotten the drain of a node that has begun, so that other nodes do not wait for it.
    is_forgotten: bool = False

    @property
    def is_done(self) -> bool:
        """True once the node's upgrade has ended, unless the node holds the phase."""
        return self.state is not None and self.state.upgraded and not self.holds


Decided: TypeAlias = "tuple[NodeView, Decision]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    """The decisions about all nodes: those to which nothing happens are apart, because a cluster may have a thousand.

    A node that waits or is done has no effects and no problem, is Ready and schedulable, and no drain of it has begun,
    so that no other node waits for it alone.
    """

    #: The nodes to which something happens, in the order of their names; missing ones come last.
    active: Sequence[Decided] = ()
    #: By name: the nodes that Rancher has not reached.
    waiting: Mapping[str, Decided] = field(default_factory=dict)
    #: By name: the nodes that are done.
    done: Mapping[str, Decided] = field(default_factory=dict)

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self.active) + len(self.waiting) + len(self.done)

    def with_active(self, pairs: Iterable[Decided]) -> Decisions:
        """Return the same with other decisions about the active nodes."""
        return replace(self, active=tuple(pairs))

    def all(self) -> list[Decided]:
        """Return all pairs, in the order of the nodes' names."""
        pairs = [*self.active, *self.waiting.values(), *self.done.values()]
        return sorted(pairs, key=lambda pair: pair[0].name)

    @property
    def names(self) -> frozenset[str]:
        """The names of all nodes."""
        return frozenset(self.waiting).union(self.done, (view.name for view, _ in self.active))

    @property
    def unfinished(self) -> list[Decided]:
        """The active nodes that are not done."""
        return [(view, decision) for view, decision in self.active if not decision.is_done]

    @property
    def left(self) -> int:
        """The number of nodes that are not done."""
        return len(self.unfinished) + len(self.waiting)
