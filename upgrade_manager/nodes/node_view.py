"""Joins the observed objects per node, and decides about each node.

A cluster may have a thousand nodes, which are upgraded one at a time. Therefore values derived from one version of an
object are cached in its store, and a decision is recomputed only when an input changes. The cache never changes a
decision.

The requests of a node are numbered: a hook is seen first, and its number is recorded before its Job exists. A hook that
then vanishes was withdrawn, or another client has acknowledged it: its number is used up, so that its Job answers no
later hook. The number that the manager acknowledges is recorded before the acknowledgement is written, so that a Secret
that is restored from a backup does not let a completed Job answer again. If that write was lost or refused, the Secret
is unchanged, and the hook is the same request.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from upgrade_manager.api.keys import (
    ANNOTATION_MACHINE,
    ANNOTATION_PENDING_OS_IMAGE,
    LABEL_JOB_TYPE,
    LABEL_NODE,
    WITNESS_LABEL,
    JobType,
)
from upgrade_manager.api.names import FIRST_ATTEMPT, label_value
from upgrade_manager.api.node_states import NodeState
from upgrade_manager.facts import machine_plan
from upgrade_manager.facts.job_state import JobState, Progress
from upgrade_manager.facts.kubernetes import is_older
from upgrade_manager.facts.machine_plan import Machine, MachinePlan, counting, machine_plans
from upgrade_manager.kube import objects
from upgrade_manager.nodes import drain, single_node
from upgrade_manager.nodes.model import NodeView, Requests
from upgrade_manager.resources import owner

if TYPE_CHECKING:
    from collections.abc import Mapping

    from upgrade_manager.api.spec import UpgradePlanSpec
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.store import Store
    from upgrade_manager.nodes.model import Decision

Decided: TypeAlias = "tuple[NodeView, Decision]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """The stores from which nodes are decided."""

    nodes: Store
    #: Machine-plan Secrets.
    secrets: Store
    machines: Store
    jobs: Store

    @property
    def versions(self) -> tuple[str, ...]:
        """The versions of the stores."""
        return tuple(store.resource_version for store in (self.nodes, self.secrets, self.machines, self.jobs))


class Target(NamedTuple):
    """The inputs that all nodes share."""

    release_os: str
    release_kubernetes: str
    #: Secrets with a drain that an earlier upgrade has begun.
    stale: frozenset[str]
    #: The time at which the phase began; empty if unknown.
    began: str = ""
    #: The Cluster's provisionGeneration.
    generation: int = 0
    #: The present attempt of the plan.
    attempt: int = FIRST_ATTEMPT


class Recorded(Protocol):
    """The node states in the plan's status."""

    def has_node(self, node: str) -> bool:
        """Return True if the node takes part."""
        ...

    def node_state(self, node: str) -> NodeState | None:
        """Return the node's state, if it is known."""
        ...

    def node_requests(self, node: str) -> Requests:
        """Return the record of the node's requests."""
        ...


def decide_all(
    recorded: Recorded, observed: Observed, *, plan_uid: str, single: str | None, spec: UpgradePlanSpec, target: Target
) -> list[Decided]:
    """Decide about every node that was recorded when the phase began, and about every node that Rancher drains.

    In a cluster of a `single` node only that node takes part: Rancher does not upgrade nodes that join it.
    """
    paused = frozenset(spec.node_upgrade_option.pause_nodes)
    known = {machine.name: machine for machine in observed.machines.derive(Machine.of)}
    plans = machine_plans(observed.secrets, known)
    jobs = _jobs(observed.jobs, plan_uid, target.attempt)
    result = []
    for cached in observed.nodes.derive(_CachedNode):
        plan = counting(plans.get(cached.name, []), known.get(cached.machine), node=cached.name)
        if cached.name == single:
            plan = plan.without_hooks()
        takes_part = recorded.has_node(cached.name) or plan.pending or plan.under_way
        if cached.name == single or (takes_part and not single):
            inputs = _Inputs(
                recorded.node_state(cached.name),
                plan,
                jobs.get(cached.label, _NO_JOBS),
                target,
                cached.name == single,
                cached.name in paused,
                spec.restore_vm,
                plan_uid,
                recorded.node_requests(cached.name),
            )
            result.append(cached.decide(inputs))
    return result


def finished_seconds(jobs: Store, plan_uid: str) -> dict[JobType, list[float]]:
    """Return the durations of the plan's complete Jobs, in seconds, by type."""
    result: dict[JobType, list[float]] = {}
    for job in jobs.derive(_read_job):
        if job is not None and job.plan_uid == plan_uid and job.state.seconds is not None:
            result.setdefault(job.job_type, []).append(job.state.seconds)
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class _NodeJob:
    """The fields of a node's Job that decisions need."""

    plan_uid: str
    #: The value of the Job's node label.
    node: str
    job_type: JobType
    attempt: int
    state: JobState

    def is_over(self, attempt: int) -> bool:
        """Return True for a Job that has failed in an earlier attempt."""
        return self.attempt < attempt and self.state.progress is Progress.FAILED


_NO_JOBS: list[_NodeJob] = []


class _Inputs(NamedTuple):
    """The inputs of a decision besides the Node itself; a tuple, because every reconcile creates one for each node."""

    state: NodeState | None
    machine_plan: MachinePlan
    jobs: list[_NodeJob]
    target: Target
    is_single: bool
    paused: bool
    restore_vms: bool
    plan_uid: str
    requests: Requests


class _CachedNode:
    """One version of a Node, and the latest decision about it."""

    def __init__(self, node: Object) -> None:
        self.name = objects.name(node)
        #: The Machine that the Node names; empty if it names none.
        self.machine = objects.annotations_of(node).get(ANNOTATION_MACHINE, "")
        #: The node's name in the labels of Jobs.
        self.label = label_value(self.name)
        self._node = node
        self._latest: tuple[_Inputs, Decided] | None = None

    def decide(self, inputs: _Inputs) -> Decided:
        """Return the latest decision, recomputed if an input has changed."""
        if self._latest is None or self._latest[0] != inputs:
            view = self._view(inputs)
            decide = single_node.decide if inputs.is_single else drain.decide
            self._latest = inputs, (view, decide(view, release_os=inputs.target.release_os))
        return self._latest[1]

    def _view(self, inputs: _Inputs) -> NodeView:
        node, plan = self._node, inputs.machine_plan
        info, is_cordoned = objects.status(node).get("nodeInfo") or {}, objects.is_true(node, "spec", "unschedulable")
        created, is_witness = objects.text(node, "metadata", "creationTimestamp"), WITNESS_LABEL in objects.labels(node)
        kubelet, wanted = info.get("kubeletVersion", ""), inputs.target.release_kubernetes
        view = NodeView(
            name=self.name,
            state=inputs.state,
            os_image=info.get("osImage", ""),
            ready=objects.is_condition_true(node, "Ready"),
            ready_since=objects.condition(node, "Ready").get("lastTransitionTime") or "",
            cordoned=is_cordoned,
            tainted=bool(objects.spec(node).get("taints")),
            boot_id=info.get("bootID", ""),
            pending_os=objects.annotations_of(node).get(ANNOTATION_PENDING_OS_IMAGE, ""),
            secret=plan.secret,
            machine=plan.machine,
            machine_problem=plan.machine_problem,
            machine_ways_out=plan.machine_ways_out,
            plan_error=plan.plan_error,
            is_witness=is_witness,
            kubelet=kubelet,
            drains=plan.drains,
            under_way=plan.under_way,
            cordon_error="" if plan.pre_drain.requested or is_cordoned else plan.drain_error,
            reinstalled=bool(inputs.target.began) and created > inputs.target.began,
            pre_drain=plan.pre_drain,
            post_drain=plan.post_drain,
            jobs={},
            kubernetes_wanted=wanted if is_older(kubelet, wanted) else "",
            stale_hook=plan.secret in inputs.target.stale,
            has_begun_drain=plan.has_begun,
            tier=plan.tier,
            paused=inputs.paused,
            restore_vms=inputs.restore_vms and not is_witness,
        )
        return _with_request(view, inputs)


def _with_request(view: NodeView, inputs: _Inputs) -> NodeView:
    """Return the view with its request, and with the Jobs that answer the request."""
    plan = inputs.machine_plan
    counted = machine_plan.counted_requests(plan.counted, inputs.plan_uid)
    numbered = _number(inputs, counted)
    number, record = numbered.number, numbered.record
    if _is_uncordoned(view, inputs, number):
        record = replace(record, uncordoned=number)
    again = bool(number) and record.uncordoned == number
    has_requests = plan.secret and not inputs.is_single
    request = machine_plan.request_id(plan.uid, number, again=again) if has_requests else ""
    jobs, old = _split_jobs(inputs, request, number)
    return replace(
        view,
        jobs=jobs,
        old_jobs=old,
        request_number=number,
        request=request,
        requests=record,
        is_used_up=numbered.is_used_up,
        has_passed=0 < number <= counted,
        counted=plan.counted,
        secret_version=plan.version,
    )


def _is_uncordoned(view: NodeView, inputs: _Inputs, number: int) -> bool:
    """Return True for a node that a user has uncordoned after its drain, before its operating system is upgraded.

    Harvester keeps one node schedulable, so that Rancher cannot drain a node of an earlier tier again before.
    """
    plan, is_begun = inputs.machine_plan, any(job.job_type is JobType.POST_DRAIN for job in inputs.jobs)
    states = {NodeState.PRE_DRAINED}
    if inputs.target.attempt > FIRST_ATTEMPT:
        # Its Job has failed in an earlier attempt, since when VMs may have come.
        states.add(NodeState.POST_DRAINING)
    is_drained = bool(plan.pre_drain.requested) and not plan.pre_drain.pending and view.state in states
    return bool(number) and is_drained and not view.cordoned and not is_begun


def _number(inputs: _Inputs, counted: int) -> Numbered:
    runs = any(job.job_type is JobType.PRE_DRAIN and job.state.may_run for job in inputs.jobs)
    generation = inputs.target.generation
    return number_request(inputs.requests, inputs.machine_plan, counted=counted, generation=generation, runs=runs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbered:
    """The number of the present request, 0 before the first, and the record with it."""

    number: int
    record: Requests
    #: True if the record must be written before the hook can be set again.
    is_used_up: bool = False


def number_request(record: Requests, plan: MachinePlan, *, counted: int, generation: int, runs: bool) -> Numbered:
    """Return the number of the node's present request.

    `counted` is the counter on the Secret, `generation` that of the Cluster. While the pre-drain Job `runs`, a raised
    generation makes no new request.
    """
    hook, acknowledged = plan.pre_drain, max(record.acknowledged, counted)
    if not plan.secret:
        return Numbered(number=acknowledged, record=record)
    if hook.pending and record.acknowledged > counted and record.secret_version == plan.version:
        return Numbered(number=record.acknowledged, record=record)
    if _is_used_up(record, plan, acknowledged, generation=generation, runs=runs):
        acknowledged = max(record.seen, acknowledged, 1)
    number = acknowledged + hook.pending
    is_new = hook.pending and number > record.seen
    # The hook of a drain that has not ended is not a further drain: another client has removed the acknowledgement.
    if is_new and not (plan.post_drain.requested and acknowledged):
        record = replace(record, seen=number, generation=generation)
    is_used_up = acknowledged > max(record.acknowledged, counted)
    if is_used_up:
        record = replace(record, acknowledged=acknowledged)
    return Numbered(number=number, record=record, is_used_up=is_used_up)


def _is_used_up(record: Requests, plan: MachinePlan, acknowledged: int, *, generation: int, runs: bool) -> bool:
    """Return True if the latest hook was withdrawn or acknowledged by another client, also while no manager ran."""
    hook = plan.pre_drain
    if hook.pending:
        is_raised = bool(record.generation) and generation > record.generation
        return record.seen > acknowledged and is_raised and not runs
    return record.seen > acknowledged or (not acknowledged and bool(hook.requested))


def _split_jobs(inputs: _Inputs, request: str, number: int) -> tuple[dict[JobType, JobState], dict[JobType, JobState]]:
    """Return the Jobs that answer the request, and those of earlier requests."""
    is_done = inputs.state is not None and inputs.state.upgraded
    jobs: dict[JobType, JobState] = {}
    old: dict[JobType, JobState] = {}
    for job in inputs.jobs:
        is_current = _upgrades_os(job, inputs) or _answers(
            job.state, job.job_type, request, number=number, is_done=is_done
        )
        (jobs if is_current else old)[job.job_type] = job.state
    return jobs, old


def _jobs(jobs: Store, plan_uid: str, attempt: int) -> Mapping[str, list[_NodeJob]]:
    """Return the Jobs by node, without the failed ones of earlier attempts, which are kept for their logs."""
    result: dict[str, list[_NodeJob]] = {}
    for job in jobs.derive(_read_job):
        if job is not None and job.plan_uid == plan_uid and not job.is_over(attempt):
            result.setdefault(job.node, []).append(job)
    return result


def _upgrades_os(job: _NodeJob, inputs: _Inputs) -> bool:
    """Return True for a post-drain Job that may be writing the OS, or whose drain has not ended.

    Such a Job is never replaced, also if another client has removed the acknowledgement of its pre-drain hook. It
    counts also after the Secret was created again without the drain.
    """
    plan = inputs.machine_plan
    is_in_drain = plan.pre_drain.pending and bool(plan.post_drain.requested)
    is_cut_off = inputs.state is NodeState.POST_DRAINING and not plan.drains
    is_needed = job.state.progress is Progress.RUNNING or is_in_drain or is_cut_off
    return job.job_type is JobType.POST_DRAIN and is_needed


def _answers(job: JobState, job_type: JobType, request: str, *, number: int, is_done: bool) -> bool:
    """Return True if the Job answers the request.

    A Job that an earlier version of the manager created has no label: it answers the first request. A pre-drain Job
    answers the first request of a node that is done only if it is marked as repeated.
    """
    if job.request:
        return job.request == request
    return number <= 1 and (job_type is not JobType.PRE_DRAIN or job.repeated or not is_done)


def _read_job(job: Object) -> _NodeJob | None:
    """Return the Job's fields; None without a node label or with an unknown type."""
    labels = objects.labels(job)
    if labels.get(LABEL_JOB_TYPE) not in JobType.__members__.values() or LABEL_NODE not in labels:
        return None
    return _NodeJob(
        plan_uid=owner.plan_uid(job),
        node=labels[LABEL_NODE],
        job_type=JobType(labels[LABEL_JOB_TYPE]),
        attempt=owner.created_in(job),
        state=JobState.of(job),
    )
