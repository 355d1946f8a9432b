from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import structlog

from upgrade_manager.api.keys import ANNOTATION_PENDING_OS_IMAGE, HARVESTER_SYSTEM, JobType
from upgrade_manager.api.node_states import NodeState
from upgrade_manager.api.phases import PhaseName
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import NotFound
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import JOBS, NODES
from upgrade_manager.nodes.anomalies import AnomalyLog
from upgrade_manager.nodes.drain import job_message
from upgrade_manager.nodes.job_state import JobState, Progress
from upgrade_manager.nodes.model import (
    AcknowledgeHook,
    ClearPendingOS,
    RestoreVMs,
    ResumeJob,
    SetPendingOS,
    StartJob,
)
from upgrade_manager.nodes.node_view import Observed, Target, decide_all
from upgrade_manager.nodes.pending_hooks import remaining_hooks
from upgrade_manager.nodes.sequencing import one_at_a_time, paused_message, starts_upgrade
from upgrade_manager.pipeline import overrides, rancher, vm_restore
from upgrade_manager.pipeline.diagnostics import job_failure_message, last_failure
from upgrade_manager.pipeline.phases.base import Completed, Failed, Phase, Waiting
from upgrade_manager.pipeline.phases.managed_nodes import single_node, unknown_pause_nodes, unmanaged
from upgrade_manager.pipeline.selections import LOCAL_MACHINES, MACHINE_PLANS, MANAGED_NODES, own_jobs
from upgrade_manager.resources.jobs import BACKOFF_LIMIT, node_job, node_job_name

if TYPE_CHECKING:
    from upgrade_manager.nodes.model import Decision, Effect, NodeView
    from upgrade_manager.nodes.node_view import Decided
    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.pipeline.phases.base import PhaseResult

#: Nodes that a message names.
MAX_NAMED_NODES = 3
NEXT_NODE = "waiting for Rancher to upgrade the next node"
log = structlog.get_logger(__name__)


@dataclass(slots=True, kw_only=True)
class _State:
    """The observations and decisions of one reconcile."""

    observed: Observed
    target: Target
    #: The name of a single-node cluster's node; None if Rancher drives the upgrade.
    single: str | None
    unknown_pause_nodes: str
    decisions: list[Decided] = field(default_factory=list)


class NodeUpgrade(Phase):
    """Upgrades Kubernetes and OS of every node: Rancher drives, the manager runs Jobs and acknowledges Rancher's hooks.

    On a single node one Job does everything, without Rancher.
    """

    name = PhaseName.NODE_UPGRADE
    activity = "Upgrading the nodes"

    def __init__(self) -> None:
        self._anomalies = AnomalyLog()

    async def enter(self, ctx: ReconcileContext) -> Failed | None:
        """Record the nodes that take part, and override settings."""
        nodes = (await ctx.watch(MANAGED_NODES)).list()
        # Nodes may have joined or left since Initialize; from here on it is fixed.
        ctx.status["singleNode"] = single_node(nodes)
        for name in map(objects.name, nodes):
            if ctx.status.node_state(name) is None:
                ctx.status.move_node(name, NodeState.IMAGE_PRELOADED)
        await overrides.record_originals(ctx)
        await overrides.apply_overrides(ctx)
        return None

    async def run(self, ctx: ReconcileContext) -> PhaseResult:
        """Run the steps in order, until one returns a result."""
        state = await _observe(ctx)
        for step in (
            _start_rancher,
            self._log_anomalies,
            _decide,
            _apply_effects,
            _fail,
            _start_nodes,
            _restore_vms,
        ):
            result = await step(ctx, state)
            if result is not None:
                return result
        await vm_restore.report_failures(ctx)
        return await _progress(ctx, state)

    async def _log_anomalies(self, ctx: ReconcileContext, state: _State) -> None:
        nodes, single = ctx.status.known_nodes(), state.single is not None
        uid, stale = ctx.owner.uid, state.target.stale
        self._anomalies.record(state.observed, plan_uid=uid, nodes=nodes, single=single, stale=stale)


async def _observe(ctx: ReconcileContext) -> _State:
    observed = Observed(
        secrets=await ctx.watch(MACHINE_PLANS),
        machines=await ctx.watch(LOCAL_MACHINES),
        nodes=await ctx.watch(MANAGED_NODES),
        jobs=await ctx.watch(own_jobs(ctx.owner)),
    )
    release = ctx.status["releaseMetadata"]
    return _State(
        observed=observed,
        target=Target(release["os"], release.get("kubernetes") or "", rancher.stale_hooks(ctx)),
        single=ctx.status["singleNode"],
        unknown_pause_nodes=unknown_pause_nodes(ctx, observed.nodes),
    )


async def _start_rancher(ctx: ReconcileContext, state: _State) -> None:
    """Patch Rancher's cluster once."""
    if state.single is not None or ctx.status["provisionGeneration"] is not None:
        return
    await rancher.remove_acknowledgements(ctx, state.observed.secrets.list())
    ctx.status["provisionGeneration"] = await rancher.start_upgrade(ctx)
    # The same message as `_progress`, to save a write.
    ctx.status.waiting(_message(NEXT_NODE, state, done=0, nodes=len(state.observed.nodes)))
    # Before any acknowledgement, which after a crash would otherwise be removed as an earlier upgrade's.
    await ctx.persist()


async def _decide(ctx: ReconcileContext, state: _State) -> None:
    single, spec, uid = state.single, ctx.plan.spec, ctx.owner.uid
    decisions = decide_all(ctx.status, state.observed, plan_uid=uid, single=single, spec=spec, target=state.target)
    state.decisions = one_at_a_time(decisions)
    if not state.decisions:
        raise unmanaged(single)


async def _apply_effects(ctx: ReconcileContext, state: _State) -> None:
    """Record the nodes' states, and apply the effects that do not start a node's upgrade."""
    for view, decision in state.decisions:
        for effect in decision.effects:
            if not starts_upgrade(effect) and not isinstance(effect, RestoreVMs):
                await _apply(ctx, effect)
        if decision.state is not None and not _restores_vms(decision):
            ctx.status.move_node(view.name, decision.state, message=decision.message)


async def _fail(ctx: ReconcileContext, state: _State) -> Failed | None:
    for view, decision in state.decisions:
        if decision.failure:
            await _restore_vms(ctx, state)
            jobs = [job for type_, job in view.jobs.items() if type_ is not JobType.RESTORE_VM]
            failed = next((job for job in jobs if job.progress is Progress.FAILED), None)
            cause = decision.failure if failed is None else await job_failure_message(ctx.client, failed)
            return Failed(cause=f"node {view.name} upgrade failed: {cause}")
    return None


async def _start_nodes(ctx: ReconcileContext, state: _State) -> None:
    """Start nodes, after a status write that conflicts if pauseNodes has changed meanwhile."""
    effects = [effect for _, decision in state.decisions for effect in decision.effects if starts_upgrade(effect)]
    if not effects:
        return
    progress = await _progress(ctx, state)
    if isinstance(progress, Waiting):
        ctx.status.waiting(progress.message)
    ctx.status.observe_generation()
    await ctx.persist()
    for effect in effects:
        await _apply(ctx, effect)


async def _restore_vms(ctx: ReconcileContext, state: _State) -> None:
    """Restore VMs last, because an error must not delay other nodes, and only then record the node as done."""
    for view, decision in state.decisions:
        if decision.state is not None and _restores_vms(decision):
            await vm_restore.start(ctx, view.name)
            ctx.status.move_node(view.name, decision.state, message=decision.message)


def _restores_vms(decision: Decision) -> bool:
    return any(isinstance(effect, RestoreVMs) for effect in decision.effects)


async def _apply(ctx: ReconcileContext, effect: Effect) -> None:
    match effect:
        case StartJob(node=node, job_type=job_type, suspended=suspended):
            job = node_job(ctx.owner, ctx.job_settings, node=node, job_type=job_type, suspended=suspended)
            await ctx.ensure(JOBS, job)
        case ResumeJob(node=node, job_type=job_type):
            await _resume(ctx, node_job_name(ctx.owner, node=node, job_type=job_type))
        case AcknowledgeHook(secret=secret, annotation=annotation, value=value):
            await rancher.annotate_secret(ctx, secret, {annotation: value})
        case SetPendingOS(node=node, os_image=os_image):
            await ctx.mark(NODES, node, {"annotations": {ANNOTATION_PENDING_OS_IMAGE: os_image}})
        case ClearPendingOS(node=node):
            await ctx.mark(NODES, node, {"annotations": {ANNOTATION_PENDING_OS_IMAGE: None}})


async def _resume(ctx: ReconcileContext, job: str) -> None:
    patch = MergePatch({"spec": {"suspend": False}})
    try:
        await ctx.patch(JOBS, job, patch, namespace=HARVESTER_SYSTEM, metadata_only=True)
    except NotFound:
        log.info("Job not found; it is recreated on the next reconcile", job=job)


async def _progress(ctx: ReconcileContext, state: _State) -> PhaseResult:
    """Report the nodes that are not done; when all are, the hooks that Rancher has not removed."""
    unfinished = [pair for pair in state.decisions if pair[1].state is None or not pair[1].state.upgraded]
    if unfinished:
        busy = [await _node_progress(ctx, *pair) for pair in unfinished if _is_busy(*pair)][:MAX_NAMED_NODES]
        paused = paused_message(unfinished, cordoned=state.single is None)
        shown = "; ".join([paused, *busy] if paused else busy) or NEXT_NODE
    else:
        shown = remaining_hooks(state.observed, multi_node=state.single is None, limit=MAX_NAMED_NODES)
    if not shown:
        return Completed()
    done, nodes = len(state.decisions) - len(unfinished), len(state.decisions)
    return Waiting(message=_message(shown, state, done=done, nodes=nodes))


def _is_busy(view: NodeView, decision: Decision) -> bool:
    paused = NodeState.UPGRADE_PAUSED
    return decision.state is not paused and (decision.state is not None or view.state is paused)


async def _node_progress(ctx: ReconcileContext, view: NodeView, decision: Decision) -> str:
    start = next((effect for effect in decision.effects if isinstance(effect, StartJob | ResumeJob)), None)
    if start is not None:
        # The same message as for the running Job, to save a write.
        name = node_job_name(ctx.owner, node=start.node, job_type=start.job_type)
        job = JobState(namespace=HARVESTER_SYSTEM, name=name, progress=Progress.RUNNING, backoff_limit=BACKOFF_LIMIT)
        return job_message(start.node, start.job_type, job)
    retried = next((job for job in view.jobs.values() if job.warning and not job.is_failing), None)
    failure = await last_failure(ctx, retried) if retried and decision.message == retried.warning else ""
    return f"{decision.progress}; last failure: {failure}" if failure else decision.progress


def _message(text: str, state: _State, *, done: int, nodes: int) -> str:
    counted = f"{text} ({done} of {nodes} nodes done)"
    return f"{counted}; {state.unknown_pause_nodes}" if state.unknown_pause_nodes else counted
