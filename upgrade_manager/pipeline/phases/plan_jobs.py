"""Follows a Plan of the system-upgrade-controller that runs a Job on every node, for ImagePreload and ImageCleanup.

image_preload.py and image_cleanup.py call it; blockers/upgrade_controller.py finds why no Job is created.

The controller overwrites its own failure condition while other nodes still run, and deletes and recreates Jobs.
Therefore a failed Job takes precedence over the Plan's reason, and a missing Job does not affect decisions.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass, replace
from operator import attrgetter
from statistics import median
from typing import TYPE_CHECKING, NamedTuple, Protocol

from upgrade_manager.api.keys import CATTLE_SYSTEM, LABEL_COMPONENT, Component, suc_node_label
from upgrade_manager.api.names import MAX_LABEL
from upgrade_manager.api.text import name_list
from upgrade_manager.api.timestamps import parse_time, seconds_between
from upgrade_manager.blockers.job_failures import job_failure
from upgrade_manager.blockers.jobs import job_wait
from upgrade_manager.blockers.wait import PlanWait
from upgrade_manager.facts.condition_words import condition_words
from upgrade_manager.facts.deployments import available_since, deployment_problem
from upgrade_manager.facts.job_state import JobState, Progress
from upgrade_manager.facts.label_selectors import matches
from upgrade_manager.facts.suc_nodes import (
    LABEL_SUC_PLAN,
    UPGRADE_CONTROLLER,
    hostname_problem,
    hostname_remedy,
    labelled_nodes,
)
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Transient
from upgrade_manager.kube.resources import DEPLOYMENTS, JOBS, NODES, SUC_PLANS
from upgrade_manager.pipeline.errors import BadCluster
from upgrade_manager.pipeline.node_upgrade.managed_nodes import check_plan_nodes, unmanaged
from upgrade_manager.pipeline.outcome import Completed, Failed, Waiting
from upgrade_manager.pipeline.phases.job_progress import describe
from upgrade_manager.pipeline.selections import MANAGED_NODES, suc_jobs, suc_plans

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from upgrade_manager.api.node_states import NodeState
    from upgrade_manager.blockers.wait import Wait
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.store import Store
    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.pipeline.outcome import PhaseResult

#: The controller's label for the node of a Job.
LABEL_SUC_NODE = "upgrade.cattle.io/node"
#: Seconds in which the controller labels the node of a complete Job, and further ones for each node.
_LABEL_SECONDS, _NODE_SECONDS = 30.0, 1.0
#: Nodes that a message names.
MAX_NAMED_NODES = 3
#: The Plan's conditions that must be True before the controller creates Jobs.
_CONDITIONS = ("Validated", "LatestResolved")


class Work(NamedTuple):
    """The task of a Plan, as messages name it."""

    name: str
    #: The clause about the nodes on which it is done.
    done: str

    def on(self, done: int, nodes: int) -> str:
        """Return the clause with the counts of nodes."""
        return f"{self.done} on {done} of {nodes} nodes"


@dataclass(frozen=True, slots=True, kw_only=True)
class SucProgress:
    """The progress of a Plan."""

    complete: bool
    failed: PlanJob | None
    #: The cause of a failure of the Plan itself; empty with a failed Job or without a failure.
    failure: str
    #: The newest Job of each node.
    jobs: dict[str, PlanJob]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanJob:
    """A Job that the controller created."""

    #: The uid of the Job's owner; empty without an owner.
    owner: str
    #: The component, which the controller copies from the Plan's labels.
    component: str
    created: str
    #: The name of the node; empty if the Job lacks the node's label.
    node: str
    paused: bool
    state: JobState

    @classmethod
    def of(cls, job: Object) -> PlanJob:
        """Read the object."""
        return cls(
            owner=objects.owner_uid(job),
            component=objects.labels(job).get(LABEL_COMPONENT, ""),
            created=str(objects.metadata(job).get("creationTimestamp") or ""),
            node=objects.labels(job).get(LABEL_SUC_NODE, ""),
            paused=objects.spec(job).get("parallelism", 1) == 0,
            state=JobState.of(job),
        )

    @property
    def counts(self) -> bool:
        """False for a paused Job without a result; the controller often replaces such Jobs before their start."""
        return not self.paused or self.state.progress is not Progress.RUNNING


def plan_progress(plan: Object, jobs: Iterable[PlanJob]) -> SucProgress:
    """Read the Plan and its Jobs, without the Jobs of an earlier Plan of the Plan's name."""
    owners, component = {"", objects.uid(plan)}, objects.labels(plan).get(LABEL_COMPONENT, "")
    counted = (job for job in jobs if job.owner in owners and job.component == component and job.counts)
    own = sorted(counted, key=attrgetter("created"))
    complete = objects.condition(plan, "Complete")
    is_failed = complete.get("reason") == "JobFailed" and complete.get("status") != "True"
    return SucProgress(
        complete=complete.get("status") == "True",
        failed=next((job for job in own if job.state.progress is Progress.FAILED), None),
        failure=(complete.get("message") or f"Plan {objects.name(plan)} reports JobFailed") if is_failed else "",
        jobs={job.node: job for job in own if job.node},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStates:
    """The node states of one phase."""

    running: NodeState
    done: NodeState
    failed: NodeState
    #: True if nodes without an entry in the status take part, too.
    adds_nodes: bool = True

    def of(self, progress: Progress) -> NodeState:
        """Return the state of a node whose Job has that progress."""
        return {Progress.RUNNING: self.running, Progress.COMPLETE: self.done, Progress.FAILED: self.failed}[progress]

    def record(self, ctx: ReconcileContext, node: str, progress: Progress, *, message: str = "") -> None:
        """Move a node that takes part."""
        if self.adds_nodes or node in ctx.status.nodes:
            ctx.status.move_node(node, self.of(progress), message=message)

    def shows(self, ctx: ReconcileContext, node: str, progress: Progress) -> bool:
        """Return True if the recorded state of the node is that of the progress."""
        return ctx.status.node_state(node) is self.of(progress)


class NodeRecord(Protocol):
    """The nodes' progress as it is recorded: by node states, or without them (survey.py)."""

    def record(self, ctx: ReconcileContext, node: str, progress: Progress, *, message: str = "") -> None:
        """Record the progress of the node's Job."""
        ...

    def shows(self, ctx: ReconcileContext, node: str, progress: Progress) -> bool:
        """Return True if the node has that progress."""
        ...


async def follow_plan(
    ctx: ReconcileContext, plan: Object, jobs: Store, *, states: NodeRecord, work: Work
) -> PhaseResult:
    """Record the nodes' states and return the Plan's result; `work` names the task in messages."""
    progress = plan_progress(plan, jobs.derive(PlanJob.of))
    for node, job in progress.jobs.items():
        states.record(ctx, node, job.state.progress, message=_node_message(job.state))
    # The event loop serves other tasks between the record of a thousand Jobs, their waits, and the report.
    await asyncio.sleep(0)
    if progress.failed is not None:
        failure = await job_failure(ctx.client, progress.failed.state)
        node = progress.failed.node
        return Failed(cause=f"Node {node}: {work.name} {failure.cause}", log=failure.log, node=node)
    if progress.failure:
        return Failed(cause=f"{work.name} failed: {progress.failure}")
    nodes = (await ctx.watch(MANAGED_NODES)).list()
    managed = [objects.name(node) for node in nodes]
    if not managed:
        raise unmanaged()
    if progress.complete:
        # A node whose managed label was added a moment ago opens the Plan again.
        labelled, selector = labelled_nodes(objects.name(plan), nodes), objects.mapping(plan, "spec", "nodeSelector")
        for node in labelled:
            states.record(ctx, node, Progress.COMPLETE)
        if all(objects.name(node) in labelled for node in nodes if matches(selector, objects.labels(node))):
            await check_plan_nodes(ctx, nodes)
            return Completed()
    done = sum(states.shows(ctx, node, Progress.COMPLETE) for node in managed)
    waits = _job_waits(plan, progress) or (_plan_wait(ctx, plan, progress),)
    await asyncio.sleep(0)
    waiting = Waiting(message=work.on(done, len(managed)), waits=waits)
    if not progress.jobs:
        return waiting
    # The message uses recorded states, because each change of a Job would cause a write.
    left = [node for node in managed if states.shows(ctx, node, Progress.RUNNING)]
    message = waiting.message + _waiting_for(left) + await _warning(ctx, progress)
    waiting = replace(waiting, message=message)
    unlabelled = unlabelled_nodes(plan, progress, nodes)
    return await _repeat(ctx, plan, progress, unlabelled, waiting=waiting) if unlabelled else waiting


def unlabelled_nodes(plan: Object, progress: SucProgress, nodes: Iterable[Object]) -> list[str]:
    """Return the nodes that the controller serves although their Jobs are complete, once no Job runs.

    The controller labels such a node within moments. A node whose label a user has removed, or that was registered
    again, is selected again, but its Job is not repeated: when the Job expires, the controller takes it for the result.
    """
    if any(job.state.progress is not Progress.COMPLETE for job in progress.jobs.values()):
        return []
    label, applying = suc_node_label(objects.name(plan)), objects.items(plan, "status", "applying")
    missing = (objects.name(node) for node in nodes if label not in objects.labels(node))
    return [name for name in missing if name in applying and name in progress.jobs]


async def _repeat(
    ctx: ReconcileContext, plan: Object, progress: SucProgress, nodes: list[str], *, waiting: Waiting
) -> Waiting:
    """Remove the Plan with its Jobs if the labels stay away, so that the next reconcile creates it again."""
    left = await _seconds_to_label(ctx, progress, len(nodes))
    if left > 0 or not await remove_to_repeat(ctx, plan):
        return replace(waiting, after=max(left, _LABEL_SECONDS))
    message = f"{waiting.message}; it is repeated, because {name_list(nodes)} lost the Plan's label"
    return replace(waiting, message=message)


async def remove_to_repeat(ctx: ReconcileContext, plan: Object) -> bool:
    """Remove the Plan, so that the next reconcile creates it again; return False if the caches are out of date."""
    if not await _are_current(ctx):
        return False
    selector = ctx.owner.suc_selector(Component(objects.labels(plan)[LABEL_COMPONENT]))
    # The Jobs go with the Plan: a new Plan would find those of its names, and not repeat them.
    for resource in (SUC_PLANS, JOBS):
        await ctx.remove_all(resource, namespace=CATTLE_SYSTEM, selector=selector)
    return True


async def _are_current(ctx: ReconcileContext) -> bool:
    """Return True if the caches show the present state: after an interruption, Jobs may arrive before the labels."""
    specs = (MANAGED_NODES, suc_plans(ctx.owner), suc_jobs(ctx.owner))
    before = [store.resource_version for store in await ctx.watch_all(*specs)]
    try:
        await ctx.informers.confirm(ctx.client, *specs)
    except Transient:
        return False
    return before == [store.resource_version for store in await ctx.watch_all(*specs)]


async def _seconds_to_label(ctx: ReconcileContext, progress: SucProgress, nodes: int) -> float:
    """Return how long a controller that runs still has to label the nodes of the Jobs that are complete."""
    limit = _LABEL_SECONDS + _NODE_SECONDS * nodes
    times = (parse_time(job.state.completed) for job in progress.jobs.values())
    ended = max((time for time in times if time is not None), default=ctx.now())
    left = limit - seconds_between(ended, ctx.now())
    if left > 0:
        return left
    selector = f"metadata.name={UPGRADE_CONTROLLER}"
    found = await ctx.client.list(DEPLOYMENTS, namespace=CATTLE_SYSTEM, field_selector=selector)
    controller = found.items[0] if found.items else None
    if controller is None or deployment_problem(controller) is not None:
        return limit
    return limit - seconds_between(available_since(controller) or ended, ctx.now())


def new_plan_wait(ctx: ReconcileContext, plan: str) -> tuple[PlanWait, ...]:
    """Return the wait for a Plan that was just created, which the cache does not show yet."""
    return (PlanWait(namespace=CATTLE_SYSTEM, name=plan, since=ctx.now()),)


def _plan_wait(ctx: ReconcileContext, plan: Object, progress: SucProgress) -> PlanWait:
    """Return the wait for the controller to create Jobs, since the Plan's creation or its last Job's begin or end."""
    times = [objects.metadata(plan).get("creationTimestamp")]
    times += [time for job in progress.jobs.values() for time in (job.created, job.state.completed)]
    since = max((time for text in times if (time := parse_time(text)) is not None), default=ctx.now())
    namespace, name, words = objects.namespace(plan), objects.name(plan), plan_condition_message(plan)
    return PlanWait(namespace=namespace, name=name, since=since, detail=words)


def _job_waits(plan: Object, progress: SucProgress) -> tuple[Wait, ...]:
    pods, work = f"{LABEL_SUC_PLAN}={objects.name(plan)}", objects.labels(plan).get(LABEL_COMPONENT, "")
    jobs = ((node, job.state) for node, job in progress.jobs.items())
    seconds = [job.state.seconds for job in progress.jobs.values() if job.state.seconds is not None]
    # A wait needs no more than their median, which is the same for each of a thousand Jobs.
    finished = [median(seconds)] if seconds else []
    return tuple(
        wait for node, state in jobs for wait in job_wait(state, work=work, node=node, pods=pods, finished=finished)
    )


def _waiting_for(nodes: list[str]) -> str:
    more = len(nodes) - MAX_NAMED_NODES
    shown = ", ".join(nodes[:MAX_NAMED_NODES]) + (f" and {more} more" if more > 0 else "")
    return f", waiting for {shown}" if nodes else ""


async def _warning(ctx: ReconcileContext, progress: SucProgress) -> str:
    """Return the warning of the first Job with a failed attempt."""
    for node, job in progress.jobs.items():
        if job.state.warning:
            return f"; {node}: {await describe(ctx, job.state)}"
    return ""


def plan_condition_message(plan: Object) -> str:
    """Return the message of the condition that prevents the Plan's Jobs; empty without such a condition."""
    for type_ in _CONDITIONS:
        found = objects.condition(plan, type_)
        if objects.text(found, "status") == "False":
            return condition_words(found) or f"{type_} is False"
    return ""


def long_name_message(nodes: Iterable[Object]) -> str:
    """Name a node whose name is too long for the controller's label; empty without such a node."""
    name = next((name for name in map(objects.name, nodes) if len(name) > MAX_LABEL), "")
    return f"Node {name}: the system-upgrade-controller supports names of up to {MAX_LABEL} characters" if name else ""


def colliding_nodes(nodes: Iterable[Object]) -> list[str]:
    """Return the names of nodes that share a Job name, so that they must run one after the other.

    The controller names a Job by the node's name up to the first dot.
    """
    by_job: defaultdict[str, list[str]] = defaultdict(list)
    for name in sorted(map(objects.name, nodes)):
        by_job[name.partition(".")[0]].append(name)
    return next((names for names in by_job.values() if len(names) > 1), [])


async def create_plan(ctx: ReconcileContext, manifest: Object, nodes: Sequence[Object], *, work: Work) -> Waiting:
    """Create the Plan, which will run on every node, and return the wait for it. Raises BadCluster.

    A Plan of that name that belongs to another owner is refused.
    """
    name = objects.name(manifest)
    if (await ctx.watch(suc_plans(ctx.owner))).get(name, CATTLE_SYSTEM) is None:
        await check_plan_nodes(ctx, nodes)
        await prepare_nodes(ctx, nodes, name)
    await ctx.ensure(SUC_PLANS, manifest)
    return Waiting(message=work.on(0, len(nodes)), waits=new_plan_wait(ctx, name))


async def prepare_nodes(ctx: ReconcileContext, nodes: Sequence[Object], plan: str) -> None:
    """Ensure that a new Plan of that name will run on every node. Raises BadCluster.

    The controller skips a node with the label of an earlier Plan of the same name, and hangs on a node whose hostname
    differs from its name.
    """
    if not nodes:
        # The controller would mark the Plan complete at once.
        raise unmanaged()
    long_name = long_name_message(nodes)
    if long_name:
        raise BadCluster(f"{long_name}. Set spec.imagePreloadOption.concurrency to -1 to skip the image preload")
    for node in nodes:
        problem = hostname_problem(node)
        if problem:
            raise BadCluster(f"Node {objects.name(node)}: {problem}. Run {hostname_remedy(node)}")
    labelled = labelled_nodes(plan, nodes)
    if not labelled:
        return
    existing = await ctx.client.find(SUC_PLANS, plan, namespace=CATTLE_SYSTEM, metadata_only=True)
    if existing is not None:
        # The labels belong to this Plan, which would run on these nodes again without the labels.
        ctx.check_owned(SUC_PLANS, existing)
        return
    for name in labelled:
        await ctx.mark(NODES, name, {"labels": {suc_node_label(plan): None}})


def _node_message(state: JobState) -> str:
    return state.cause if state.progress is Progress.FAILED else state.warning
