from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from upgrade_manager.api.keys import (
    ANNOTATION_PENDING_OS_IMAGE,
    FLEET_LOCAL,
    HARVESTER_SYSTEM,
    MANAGED_LABEL,
    JobType,
)
from upgrade_manager.api.node_states import NodeState
from upgrade_manager.api.phases import PhaseName
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import NotFound
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import JOBS, NODES, SECRETS
from upgrade_manager.nodes import machine_plan, pending_hooks
from upgrade_manager.nodes.anomalies import AnomalyLog
from upgrade_manager.nodes.drain import job_progress
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
from upgrade_manager.nodes.sequencing import PAUSE_FIELD, one_at_a_time, starts_upgrade
from upgrade_manager.pipeline import overrides, rancher
from upgrade_manager.pipeline.diagnostics import job_failure_message
from upgrade_manager.pipeline.errors import BadCluster
from upgrade_manager.pipeline.pauselist import enumerated, misnamed
from upgrade_manager.pipeline.phases.base import Completed, Failed, Phase, Waiting
from upgrade_manager.pipeline.phases.initialize import single_node
from upgrade_manager.pipeline.selections import LOCAL_MACHINES, MACHINE_PLANS, MANAGED_NODES, own_jobs
from upgrade_manager.pipeline.vm_restore import report, start
from upgrade_manager.resources.jobs import BACKOFF_LIMIT, node_job, node_job_name
from upgrade_manager.runtime.concurrency import run_all

if TYPE_CHECKING:
    from collections.abc import Iterable

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.nodes.model import Decision, Effect, NodeView
    from upgrade_manager.nodes.node_view import Decided
    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.pipeline.phases.base import PhaseResult

#: Nodes that a message names; more would help nobody.
NAMED = 3
NOBODY_BUSY = "waiting for Rancher to upgrade the next node"
log = structlog.get_logger(__name__)


class NodeUpgrade(Phase):
    """Takes node after node through drain, Kubernetes upgrade, OS upgrade and reboot: Rancher drives, we answer.

    On an only node one Job does all of it; Rancher is not asked.
    """

    name = PhaseName.NODE_UPGRADE

    def __init__(self) -> None:
        self._anomalies = AnomalyLog()

    async def enter(self, ctx: ReconcileContext) -> Failed | None:
        """Note what is going to be changed, then change it; every node begins as preloaded."""
        nodes = (await ctx.watch(MANAGED_NODES)).list()
        # Nodes may have joined or left since the beginning: from here on it stays as it is.
        ctx.status["singleNode"] = single_node(nodes)
        for node in nodes:
            if ctx.status.node_state(objects.name(node)) is None:
                ctx.status.move_node(objects.name(node), NodeState.IMAGE_PRELOADED)
        present = objects.annotations_of(ctx.raw)
        notes = {key: value for key, value in (await _originals(ctx)).items() if key not in present}
        if notes:
            await ctx.annotate(notes)
        await overrides.change(ctx)
        return None

    async def run(self, ctx: ReconcileContext) -> PhaseResult:
        """Ask Rancher once; then look at every node, do what is due, and see whether all are done."""
        secrets = await ctx.watch(MACHINE_PLANS)
        machines = await ctx.watch(LOCAL_MACHINES)
        nodes = await ctx.watch(MANAGED_NODES)
        jobs = await ctx.watch(own_jobs(ctx.owner))
        aside = misnamed(ctx, nodes)
        single = ctx.status["singleNode"]
        if single is None and ctx.status["provisionGeneration"] is None:
            await _forget_old_answers(ctx, secrets.list())
            ctx.status["provisionGeneration"] = await rancher.start(ctx)
            # In the words in which it is judged below, so that this is not to be written twice.
            ctx.status.waiting(_waiting_for(NOBODY_BUSY, done=0, nodes=len(nodes), aside=aside))
            # On record before any hook is answered: the answers must not be taken for an earlier upgrade's.
            await ctx.persist()
        observed = Observed(nodes=nodes, secrets=secrets, machines=machines, jobs=jobs)
        aim = _aim(ctx)
        uid, known = ctx.owner.uid, ctx.status.known_nodes()
        self._anomalies.record(observed, plan_uid=uid, nodes=known, single=bool(single), stale=aim.stale)
        decided = decide_all(ctx.status, observed, plan_uid=uid, single=single, spec=ctx.plan.spec, target=aim)
        decisions = one_at_a_time(decided)
        if not decisions:
            missing = f"Node {single} does not exist or does not carry" if single else "no Node carries"
            raise BadCluster(f"{missing} the label {MANAGED_LABEL}=true any more; put it back")
        await _carry_out(ctx, decisions)
        failed = next(((view, decision) for view, decision in decisions if decision.failure), None)
        if failed is not None:
            await _restore_vms(ctx, decisions)
            return Failed(cause=await _cause(ctx, *failed))
        outcome = _judge(ctx, decisions, observed, aside=aside)
        await _begin(ctx, decisions, outcome)
        await _restore_vms(ctx, decisions)
        await report(ctx)
        return outcome


async def _originals(ctx: ReconcileContext) -> dict[str, str]:
    """What is to be noted, read at the same time: on a large cluster the list of the machine plans takes a while."""
    if ctx.status["singleNode"] is not None:
        return await overrides.originals(ctx)
    found: dict[str, str] = {}

    async def settings() -> None:
        found.update(await overrides.originals(ctx))

    await run_all(settings(), rancher.read_cluster(ctx), ctx.watch(MACHINE_PLANS))
    asking = machine_plan.with_hooks((await ctx.watch(MACHINE_PLANS)).list())
    return found | rancher.original(await rancher.read_cluster(ctx), asking=asking)


def _aim(ctx: ReconcileContext) -> Target:
    release = ctx.status["releaseMetadata"]
    return Target(release["os"], release.get("kubernetes") or "", rancher.left_over(ctx))


async def _carry_out(ctx: ReconcileContext, decisions: list[Decided]) -> None:
    """Do what is due at once, and take down where the nodes are."""
    for view, decision in decisions:
        for effect in decision.effects:
            if not starts_upgrade(effect) and not isinstance(effect, RestoreVMs):
                await _apply(ctx, effect)
        if decision.state is not None and not _restores(decision):
            ctx.status.move_node(view.name, decision.state, message=decision.message)


async def _begin(ctx: ReconcileContext, decisions: list[Decided], outcome: PhaseResult) -> None:
    """Let nodes begin, once that is on record: which fails where the plan has been changed meanwhile."""
    effects = [effect for _, decision in decisions for effect in decision.effects if starts_upgrade(effect)]
    if not effects:
        return
    if isinstance(outcome, Waiting):
        ctx.status.waiting(outcome.message)
    ctx.status.observe_generation()
    await ctx.persist()
    for effect in effects:
        await _apply(ctx, effect)


async def _restore_vms(ctx: ReconcileContext, decisions: list[Decided]) -> None:
    """Last of all, for it may fail and must hold up nobody; only then the node counts as done."""
    for view, decision in decisions:
        if decision.state is not None and _restores(decision):
            await start(ctx, view.name)
            ctx.status.move_node(view.name, decision.state, message=decision.message)


def _restores(decision: Decision) -> bool:
    return any(isinstance(effect, RestoreVMs) for effect in decision.effects)


async def _apply(ctx: ReconcileContext, effect: Effect) -> None:
    match effect:
        case StartJob(node=node, job_type=job_type, suspended=suspended):
            settings = ctx.job_settings
            job = node_job(ctx.owner, settings, node=node, job_type=job_type, suspended=suspended)
            await ctx.ensure(JOBS, job)
        case ResumeJob(node=node, job_type=job_type):
            await _resume(ctx, node_job_name(ctx.owner, node=node, job_type=job_type))
        case AcknowledgeHook(secret=secret, annotation=annotation, value=value):
            await _annotate_secret(ctx, secret, {annotation: value})
        case SetPendingOS(node=node, os_image=os_image):
            await _note_os(ctx, node, os_image)
        case ClearPendingOS(node=node):
            await _note_os(ctx, node, None)


async def _resume(ctx: ReconcileContext, job: str) -> None:
    try:
        await ctx.patch(
            JOBS, job, MergePatch({"spec": {"suspend": False}}), namespace=HARVESTER_SYSTEM, metadata_only=True
        )
    except NotFound:
        log.info("gone, so not resumed; the next look makes it anew", job=job)


async def _annotate_secret(ctx: ReconcileContext, name: str, values: dict[str, str | None]) -> None:
    await ctx.mark(SECRETS, name, {"annotations": values}, namespace=FLEET_LOCAL)


async def _note_os(ctx: ReconcileContext, node: str, os_image: str | None) -> None:
    await ctx.mark(NODES, node, {"annotations": {ANNOTATION_PENDING_OS_IMAGE: os_image}})


async def _forget_old_answers(ctx: ReconcileContext, secrets: Iterable[Object]) -> None:
    """Remove an earlier upgrade's answers: Rancher asks the same words again, and would not wait for us."""
    for secret in secrets:
        left = machine_plan.acknowledgements(secret)
        if left:
            log.info("old drain hook answers removed", secret=objects.name(secret), answers=left)
            await _annotate_secret(ctx, objects.name(secret), dict.fromkeys(left))


async def _cause(ctx: ReconcileContext, view: NodeView, decision: Decision) -> str:
    steps = [job for type_, job in view.jobs.items() if type_ is not JobType.RESTORE_VM]
    failed = next((job for job in steps if job.progress is Progress.FAILED), None)
    cause = decision.failure if failed is None else await job_failure_message(ctx.client, failed)
    return f"node {view.name} upgrade failed: {cause}"


def _waits_for(ctx: ReconcileContext, decision: Decision) -> str:
    """A Job that has just been started is waited for in the same words as one that runs."""
    for effect in decision.effects:
        if isinstance(effect, StartJob | ResumeJob) and decision.state is not NodeState.UPGRADE_PAUSED:
            name = node_job_name(ctx.owner, node=effect.node, job_type=effect.job_type)
            job = JobState(
                namespace=HARVESTER_SYSTEM, name=name, progress=Progress.RUNNING, backoff_limit=BACKOFF_LIMIT
            )
            return job_progress(effect.node, effect.job_type, job)
    return decision.progress


def _judge(ctx: ReconcileContext, decisions: list[Decided], observed: Observed, *, aside: str) -> PhaseResult:
    pending = [judged for judged in decisions if judged[1].state is None or not judged[1].state.upgraded]
    if pending:
        shown = "; ".join([*_held(ctx, pending), *_busy(ctx, pending)[:NAMED]]) or NOBODY_BUSY
        done = len(decisions) - len(pending)
        return Waiting(message=_waiting_for(shown, done=done, nodes=len(decisions), aside=aside))
    asking = _asking(observed, is_driven=ctx.status["singleNode"] is None)
    if asking:
        return Waiting(message=_waiting_for(asking, done=len(decisions), nodes=len(decisions), aside=aside))
    return Completed()


def _asking(observed: Observed, *, is_driven: bool) -> str:
    """Which of Rancher's questions are not taken back yet, by node; empty where all are."""
    machines = {objects.name(machine): machine for machine in observed.machines.list()}
    managed = set(observed.nodes.derive(objects.name))
    found = pending_hooks.remaining_hooks(observed.secrets.list(), machines, managed=managed, multi_node=is_driven)
    return "; ".join([*found[:NAMED], *([f"{len(found) - NAMED} more"] if len(found) > NAMED else [])])


def _held(ctx: ReconcileContext, pending: list[Decided]) -> list[str]:
    """Who is held back, all of them together."""
    names = [view.name for view, decision in pending if decision.state is NodeState.UPGRADE_PAUSED]
    if not names:
        return []
    cordoned = "" if ctx.status["singleNode"] else " (cordoned)"
    verb, pronoun = ("is", "it") if len(names) == 1 else ("are", "them")
    return [f"{enumerated(names)} {verb} paused{cordoned}; remove {pronoun} from {PAUSE_FIELD} to continue"]


def _busy(ctx: ReconcileContext, pending: list[Decided]) -> list[str]:
    """What the others wait for that have begun, or may and do not yet."""
    return [
        _waits_for(ctx, decision)
        for view, decision in pending
        if decision.state is not NodeState.UPGRADE_PAUSED
        and (decision.state is not None or view.state is NodeState.UPGRADE_PAUSED)
    ]


def _waiting_for(what: str, *, done: int, nodes: int, aside: str) -> str:
    return f"{what} ({done} of {nodes} nodes done)" + (f"; {aside}" if aside else "")
