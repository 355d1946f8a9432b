"""Joins the observed objects of one node, and decides about it; decided_nodes.py does so for all nodes.

The requests of a node are numbered: a hook is seen first, and its number is recorded before its Job exists. A hook that
then vanishes was withdrawn, or another client has acknowledged it: its number is used up, so that its Job answers no
later hook. The number that the manager acknowledges is recorded before the acknowledgement is written, so that a Secret
that is restored from a backup does not let a completed Job answer again. If that write was lost or refused, the Secret
is unchanged, and the hook is the same request.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from upgrade_manager.api.keys import (
    ANNOTATION_PENDING_OS_IMAGE,
    LABEL_JOB_TYPE,
    LABEL_NODE,
    WITNESS_LABEL,
    JobType,
)
from upgrade_manager.api.names import FIRST_ATTEMPT
from upgrade_manager.api.node_states import NodeState
from upgrade_manager.facts import machine_plan
from upgrade_manager.facts.job_state import JobState, Progress
from upgrade_manager.facts.kubernetes import is_older
from upgrade_manager.kube import objects
from upgrade_manager.nodes import drain, single_node
from upgrade_manager.nodes.model import NodeView, Requests
from upgrade_manager.resources import owner

if TYPE_CHECKING:
    from collections.abc import Sequence

    from upgrade_manager.facts.machine_plan import MachinePlan
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.store import Store
    from upgrade_manager.nodes.model import Decided


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """The stores from which nodes are decided."""

    nodes: Store
    #: Machine-plan Secrets.
    secrets: Store
    machines: Store
    jobs: Store

    def mark(self) -> tuple[int, ...]:
        """Return the mark of each store, for `touched_since`."""
        return tuple(store.mark() for store in self._stores)

    def touched_since(self, marks: tuple[int, ...]) -> list[list[Object]] | None:
        """Return the changed objects of each store since then; None if a store has forgotten some."""
        found = [store.touched_since(mark) for store, mark in zip(self._stores, marks, strict=True)]
        return [one for one in found if one is not None] if None not in found else None

    @property
    def versions(self) -> tuple[str, ...]:
        """The versions of the stores."""
        return tuple(store.resource_version for store in self._stores)

    @property
    def _stores(self) -> tuple[Store, ...]:
        return self.nodes, self.secrets, self.machines, self.jobs


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


class Shared(NamedTuple):
    """The inputs that all nodes share, with those of the plan."""

    target: Target
    plan_uid: str
    #: The node of a cluster that has one node; only that node takes part.
    single: str | None
    #: The nodes in pauseNodes.
    paused: frozenset[str]
    restore_vms: bool


def finished_seconds(jobs: Store, plan_uid: str) -> dict[JobType, list[float]]:
    """Return the durations of the plan's complete Jobs, in seconds, by type."""
    result: dict[JobType, list[float]] = {}
    for job in jobs.derive(_read_job):
        if job is not None and job.plan_uid == plan_uid and job.state.seconds is not None:
            result.setdefault(job.job_type, []).append(job.state.seconds)
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeJob:
    """The fields of a node's Job that decisions need."""

    plan_uid: str
    job_type: JobType
    attempt: int
    state: JobState

    def is_over(self, attempt: int) -> bool:
        """Return True for a Job that has failed in an earlier attempt."""
        return self.attempt < attempt and self.state.progress is Progress.FAILED


class Inputs(NamedTuple):
    """The inputs of the decision about one node."""

    node: Object
    state: NodeState | None
    #: The record of the node's requests in its status entry.
    requests: Requests
    machine_plan: MachinePlan
    jobs: Sequence[NodeJob]
    shared: Shared
    is_single: bool


def decide(inputs: Inputs) -> Decided:
    """Join what is observed of the node, and decide about it."""
    view = _with_request(_view(inputs), inputs)
    decide = single_node.decide if inputs.is_single else drain.decide
    return view, decide(view, release_os=inputs.shared.target.release_os)


def _view(inputs: Inputs) -> NodeView:
    node, plan, shared = inputs.node, inputs.machine_plan, inputs.shared
    name, info = objects.name(node), objects.status(node).get("nodeInfo") or {}
    is_cordoned = objects.is_true(node, "spec", "unschedulable")
    created, is_witness = objects.text(node, "metadata", "creationTimestamp"), WITNESS_LABEL in objects.labels(node)
    kubelet, wanted = info.get("kubeletVersion", ""), shared.target.release_kubernetes
    return NodeView(
        name=name,
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
        reinstalled=bool(shared.target.began) and created > shared.target.began,
        pre_drain=plan.pre_drain,
        post_drain=plan.post_drain,
        jobs={},
        kubernetes_wanted=wanted if is_older(kubelet, wanted) else "",
        stale_hook=plan.secret in shared.target.stale,
        has_begun_drain=plan.has_begun,
        tier=plan.tier,
        paused=name in shared.paused,
        restore_vms=shared.restore_vms and not is_witness,
    )


def _with_request(view: NodeView, inputs: Inputs) -> NodeView:
    """Return the view with its request, and with the Jobs that answer the request."""
    plan = inputs.machine_plan
    counted = machine_plan.counted_requests(plan.counted, inputs.shared.plan_uid)
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


def _is_uncordoned(view: NodeView, inputs: Inputs, number: int) -> bool:
    """Return True for a node that a user has uncordoned after its drain, before its operating system is upgraded.

    Harvester keeps one node schedulable, so that Rancher cannot drain a node of an earlier tier again before.
    """
    plan, is_begun = inputs.machine_plan, any(job.job_type is JobType.POST_DRAIN for job in inputs.jobs)
    states = {NodeState.PRE_DRAINED}
    if inputs.shared.target.attempt > FIRST_ATTEMPT:
        # Its Job has failed in an earlier attempt, since when VMs may have come.
        states.add(NodeState.POST_DRAINING)
    is_drained = bool(plan.pre_drain.requested) and not plan.pre_drain.pending and view.state in states
    return bool(number) and is_drained and not view.cordoned and not is_begun


def _number(inputs: Inputs, counted: int) -> Numbered:
    runs = any(job.job_type is JobType.PRE_DRAIN and job.state.may_run for job in inputs.jobs)
    generation = inputs.shared.target.generation
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


def _split_jobs(inputs: Inputs, request: str, number: int) -> tuple[dict[JobType, JobState], dict[JobType, JobState]]:
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


def jobs_of(label: str, jobs: Store, shared: Shared) -> list[NodeJob]:
    """Return the plan's Jobs with that label, without the failed ones of earlier attempts, which are kept for logs."""
    found = (jobs.derive_one(_read_job, where) for where in jobs.keys_by(label_of, label))
    attempt = shared.target.attempt
    return [job for job in found if job and job.plan_uid == shared.plan_uid and not job.is_over(attempt)]


def label_of(job: Object) -> str:
    """Return the value of the Job's node label; empty without one."""
    return objects.labels(job).get(LABEL_NODE, "")


def _upgrades_os(job: NodeJob, inputs: Inputs) -> bool:
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


def _read_job(job: Object) -> NodeJob | None:
    """Return the Job's fields; None without a node label or with an unknown type."""
    labels = objects.labels(job)
    if labels.get(LABEL_JOB_TYPE) not in JobType.__members__.values() or LABEL_NODE not in labels:
        return None
    return NodeJob(
        plan_uid=owner.plan_uid(job),
        job_type=JobType(labels[LABEL_JOB_TYPE]),
        attempt=owner.created_in(job),
        state=JobState.of(job),
    )
