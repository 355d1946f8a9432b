"""The progress of a system-upgrade-controller's Plan, judged from what can be trusted of it.

The controller overwrites its own verdict (a failure seen while others still work is lost) and deletes and creates Jobs
as a matter of course. So a failed Job is the first sign of failure, the Plan's reason the second, and a Job that is
gone is no sign at all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import CATTLE_SYSTEM, LABEL_COMPONENT, LABEL_HOSTNAME, MANAGED_LABEL, suc_node_label
from upgrade_manager.api.names import MAX_LABEL
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import NODES, SUC_PLANS
from upgrade_manager.nodes.job_state import JobState, Progress
from upgrade_manager.pipeline.complaints import newest_warning, own_complaint
from upgrade_manager.pipeline.diagnostics import attempt, limit_of
from upgrade_manager.pipeline.errors import BadCluster
from upgrade_manager.pipeline.inquiries import PATIENCE
from upgrade_manager.pipeline.lastwords import with_last_words
from upgrade_manager.pipeline.phases.base import Completed, Failed, Waiting
from upgrade_manager.pipeline.selections import MANAGED_NODES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from upgrade_manager.api.node_states import NodeState
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.store import Store
    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.pipeline.phases.base import PhaseResult

#: The label by which the controller's Jobs tell their node.
LABEL_SUC_NODE = "upgrade.cattle.io/node"
#: Nodes that a message names; more would help nobody.
NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Where a Plan stands."""

    complete: bool
    #: The Job that failed, or None.
    failed: JobState | None
    #: Why the Plan has failed although no failed Job is there (any more); empty where it has not.
    failure: str
    #: Per node with a Job that may run: its newest one.
    nodes: dict[str, PlanJob]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanJob:
    """What one of the controller's Jobs says."""

    #: Of the Plan; empty where the Job has no owner.
    owner: str
    #: Of the upgrade, by the label that the controller copies from the Plan.
    component: str
    #: By its text the Jobs of a node are put in order.
    created: str
    #: Empty where the Job carries no node's label.
    node: str
    paused: bool
    #: So often it may fail before it has failed for good.
    limit: int
    state: JobState

    @classmethod
    def of(cls, job: Object) -> PlanJob:
        """Read it from the object."""
        return cls(
            owner=objects.owner_uid(job),
            component=objects.labels(job).get(LABEL_COMPONENT, ""),
            created=str(objects.metadata(job).get("creationTimestamp") or ""),
            node=objects.labels(job).get(LABEL_SUC_NODE, ""),
            paused=objects.spec(job).get("parallelism", 1) == 0,
            limit=limit_of(job),
            state=JobState.of(job),
        )

    @property
    def counts(self) -> bool:
        """The controller creates Jobs paused, and often makes them anew before they start; a verdict counts always."""
        return not self.paused or self.state.progress is not Progress.RUNNING


def judge(plan: Object, jobs: Iterable[PlanJob]) -> Work:
    """Read the Plan and its Jobs; those of an earlier Plan of the same name may still be about."""
    of_this, component = {"", objects.uid(plan)}, objects.labels(plan).get(LABEL_COMPONENT, "")
    belonging = (job for job in jobs if job.owner in of_this and job.component == component and job.counts)
    own = sorted(belonging, key=attrgetter("created"))
    complete = objects.condition(plan, "Complete") or {}
    is_failed = complete.get("reason") == "JobFailed" and complete.get("status") != "True"
    return Work(
        complete=complete.get("status") == "True",
        failed=next((job.state for job in own if job.state.progress is Progress.FAILED), None),
        failure=(complete.get("message") or "a Job failed") if is_failed else "",
        nodes={job.node: job for job in own if job.node},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class States:
    """The node states of one kind of work."""

    running: NodeState
    done: NodeState
    failed: NodeState

    def of(self, progress: Progress) -> NodeState:
        """The state of a node whose Job is that far."""
        return {Progress.RUNNING: self.running, Progress.COMPLETE: self.done, Progress.FAILED: self.failed}[progress]


async def follow(ctx: ReconcileContext, plan: Object, jobs: Store, *, states: States, what: str) -> PhaseResult:
    """Take over what is known of a Plan that runs: the nodes' states, and its verdict. `what` names the work."""
    work = judge(plan, jobs.derive(PlanJob.of))
    for node, job in work.nodes.items():
        ctx.status.move_node(node, states.of(job.state.progress), message=_note(job.state))
    if work.failed is not None:
        return Failed(cause=f"{what} failed: {await with_last_words(ctx.client, work.failed)}")
    if work.failure:
        return Failed(cause=f"{what} failed: {work.failure}")
    managed = (await ctx.watch(MANAGED_NODES)).derive(objects.name)
    if not managed:
        raise no_nodes()
    if work.complete:
        for node in managed:
            ctx.status.move_node(node, states.done)
        return Completed()
    done = sum(ctx.status.node_state(node) is states.done for node in managed)
    waiting = not_done(objects.name(plan), what, done=done, nodes=len(managed))
    if not work.nodes:
        return await _idle(ctx, waiting, plan)
    # By the states that are written along: the Jobs come and go, and each change would be a write of its own.
    busy = [node for node in managed if ctx.status.node_state(node) is states.running]
    return replace(waiting, message=waiting.message + _at_work(busy) + await _trouble(ctx, work))


def _at_work(nodes: list[str]) -> str:
    """Which nodes are under way."""
    more = len(nodes) - NAMED
    shown = ", ".join(sorted(nodes)[:NAMED]) + (f" and {more} more" if more > 0 else "")
    return f", now on {shown}" if nodes else ""


async def _trouble(ctx: ReconcileContext, work: Work) -> str:
    """The first Job that has not gone well so far, and may yet."""
    for node, job in work.nodes.items():
        if job.state.warning:
            tried = not job.state.is_failing
            said = await attempt(ctx, job.state, limit=job.limit) if tried else job.state.warning
            return f"; node {node}: {said}"
    return ""


async def _idle(ctx: ReconcileContext, waiting: Waiting, plan: Object) -> Waiting:
    """No Job yet. Where the API server refuses them the controller says nothing in the Plan's status, ever."""
    age = ctx.status.age(plan)
    if age < PATIENCE:
        return replace(waiting, after=PATIENCE - age)
    place, name = objects.namespace(plan), objects.name(plan)
    ask = partial(newest_warning, ctx.client, plan, kind="Plan")
    complaint = own_complaint(plan) or await ctx.informers.inquiries.answer(f"start of {place}/{name}", ask)
    text = (
        f"; no Job has started for {PATIENCE:.0f} s{complaint and f' ({complaint})'}: "
        f"see kubectl describe -n {place} plans.upgrade.cattle.io {name}"
    )
    # Nothing that is watched tells of a new complaint.
    return replace(waiting, message=waiting.message + text, after=PATIENCE)


def not_done(plan_object: str, what: str, *, done: int, nodes: int) -> Waiting:
    """What is said while a Plan runs."""
    return Waiting(message=f"waiting for Plan {CATTLE_SYSTEM}/{plan_object}: {what} done on {done} of {nodes} nodes")


def out_of_reach(nodes: Iterable[Object]) -> str:
    """The name of a node that the controller cannot work on, because its Jobs' labels hold the name; empty if none."""
    return next((name for name in map(objects.name, nodes) if len(name) > MAX_LABEL), "")


def one_by_one(nodes: Iterable[Object]) -> bool:
    """Whether the nodes must come one after the other.

    The controller names its Jobs by a node's name up to the first dot: two nodes that share that part share a Job.
    """
    first = [objects.name(node).partition(".")[0] for node in nodes]
    return len(set(first)) < len(first)


def no_nodes() -> BadCluster:
    """The error where a Plan selects nothing: the controller would call it complete at once."""
    return BadCluster(f"no Node carries the label {MANAGED_LABEL}=true any more; put it back on the nodes")


async def prepare_nodes(ctx: ReconcileContext, nodes: Sequence[Object], plan_object: str) -> None:
    """Make sure that a new Plan of that name will run on every node. Raises BadCluster.

    A node that still carries the label of an earlier Plan of the name counts as done there, and one whose hostname is
    not its name makes the controller hang.
    """
    if not nodes:
        raise no_nodes()
    label = suc_node_label(plan_object)
    unreachable = out_of_reach(nodes)
    if unreachable:
        raise BadCluster(
            f"Node {unreachable}: the system-upgrade-controller cannot work on nodes with names of more than "
            f"{MAX_LABEL} characters; set spec.imagePreloadOption.concurrency to -1 to go on without it"
        )
    for node in nodes:
        name, hostname = objects.name(node), objects.labels(node).get(LABEL_HOSTNAME, "")
        if hostname != name:
            raise BadCluster(
                f'Node {name}: its label {LABEL_HOSTNAME} is "{hostname}", but the '
                f"system-upgrade-controller only works where it equals the node's name; correct the label"
            )
    labelled = [objects.name(node) for node in nodes if label in objects.labels(node)]
    if not labelled:
        return
    existing = await ctx.find(SUC_PLANS, plan_object, namespace=CATTLE_SYSTEM, metadata_only=True)
    if existing is not None:
        # Its labels are its own business: without them it would run on all nodes again.
        ctx.check_ours(SUC_PLANS, existing)
        return
    for name in labelled:
        await ctx.mark(NODES, name, {"labels": {label: None}})


def _note(state: JobState) -> str:
    return state.cause if state.progress is Progress.FAILED else state.warning
