"""engine.py runs the phase; `nodes` decides, effects.py applies, waits.py and report.py describe the decisions."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import structlog

from upgrade_manager.api.keys import HARVESTER_SYSTEM, JobType
from upgrade_manager.api.node_states import NodeState
from upgrade_manager.api.phases import PhaseName
from upgrade_manager.api.timestamps import format_time
from upgrade_manager.blockers.job_failures import job_failure_message, last_failure
from upgrade_manager.facts import machine_plan
from upgrade_manager.facts.job_state import JobState, Progress
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import KubeError
from upgrade_manager.nodes.anomalies import AnomalyLog
from upgrade_manager.nodes.drain import job_message
from upgrade_manager.nodes.gate import Surroundings, hold_back, is_down_before
from upgrade_manager.nodes.model import Decision, NodeView, RestoreVMs, ResumeJob, StartJob
from upgrade_manager.nodes.next_node import next_node_message, undrained
from upgrade_manager.nodes.node_view import Observed, Target, decide_all, machine_nodes
from upgrade_manager.nodes.pending_hooks import delays, describe_delays
from upgrade_manager.nodes.sequencing import one_at_a_time, paused_message, starts_upgrade
from upgrade_manager.pipeline import job_ledger, ledger
from upgrade_manager.pipeline.errors import BadCluster
from upgrade_manager.pipeline.node_upgrade import drain_entries, vm_restore
from upgrade_manager.pipeline.node_upgrade.effects import apply_effect, remove_acknowledgements
from upgrade_manager.pipeline.node_upgrade.gate_waits import gate_waits
from upgrade_manager.pipeline.node_upgrade.managed_nodes import unknown_pause_nodes
from upgrade_manager.pipeline.node_upgrade.missing_nodes import WITHOUT_NODE, find_all_missing, held_by, report_left
from upgrade_manager.pipeline.node_upgrade.report import (
    moved_nodes,
    remove_passed_estimate,
    report_milestones,
    update_estimate,
)
from upgrade_manager.pipeline.node_upgrade.state import Handled, State
from upgrade_manager.pipeline.node_upgrade.waits import NodeWaits
from upgrade_manager.pipeline.outcome import Completed, Failed, Phase, Waiting
from upgrade_manager.pipeline.selections import LOCAL_MACHINES, MACHINE_PLANS, MANAGED_NODES, UPGRADE_JOBS
from upgrade_manager.pipeline.settings import overrides, rancher, unfinished_upgrade
from upgrade_manager.pipeline.settings.overrides import give_back
from upgrade_manager.resources.jobs import BACKOFF_LIMIT, node_job_name
from upgrade_manager.runtime.concurrency import run_all

if TYPE_CHECKING:
    from collections.abc import Iterable

    from upgrade_manager.blockers.wait import Wait
    from upgrade_manager.nodes.node_view import Decided
    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.pipeline.outcome import PhaseResult

#: Nodes that a message names.
MAX_NAMED_NODES = 3
#: The phase values with which milestones are recorded.
_PHASES = frozenset({PhaseName.NODE_UPGRADE.active, PhaseName.NODE_UPGRADE.completed})
log = structlog.get_logger(__name__)


class NodeUpgrade(Phase):
    """Upgrades Kubernetes and OS of every node: Rancher drives, the manager runs Jobs and acknowledges Rancher's hooks.

    On a single node one Job does everything, without Rancher. When the phase ends, every recorded node reports the
    release's OS, is Ready and schedulable, no hook is pending and the settings are given back.
    """

    name = PhaseName.NODE_UPGRADE
    activity = "Upgrading the nodes"
    reads_repository = True

    def __init__(self) -> None:
        self._anomalies = AnomalyLog()
        self._handled = Handled()

    async def enter(self, ctx: ReconcileContext) -> Failed | None:
        """Record the nodes that take part, and the originals of the settings to override."""
        await vm_restore.discard_stale_list(ctx)
        specs = (MANAGED_NODES, LOCAL_MACHINES, MACHINE_PLANS)
        await run_all(
            ctx.watch_all(*specs, UPGRADE_JOBS), overrides.record_originals(ctx), job_ledger.discard_stale(ctx)
        )
        nodes, machines, secrets = await ctx.watch_all(*specs)
        names = list(map(objects.name, nodes.list()))
        if ctx.status["singleNode"] is None:
            # Rancher upgrades the nodes of all Machines, also a node whose managed label is missing at this moment.
            names += machine_nodes(machines)
            ctx.status["staleHooks"] = machine_plan.with_hooks(secrets.list()) or None
        for name in sorted(set(names)):
            if ctx.status.node_state(name) is None:
                ctx.status.move_node(name, NodeState.IMAGE_PRELOADED)
        return None

    async def run(self, ctx: ReconcileContext) -> PhaseResult:
        """Run the steps in order, until one returns a result."""
        state = await _observe(ctx, self._handled_of(ctx))
        if state.single is None:
            state.cluster = await rancher.watched_cluster(ctx)
        for step in (
            _begin,
            self._log_anomalies,
            _decide,
            _report,
            _keep_hooks,
            _apply_effects,
            _fail,
            _start_nodes,
            _restore_vms,
        ):
            result = await step(ctx, state)
            if result is not None:
                return result
        if ctx.plan.spec.restore_vm:
            await vm_restore.report_failures(ctx)
        return await _progress(ctx, state)

    async def exit(self, ctx: ReconcileContext) -> Waiting | Failed | None:
        """Give all settings back, and handle the hooks that Rancher sets before its strategy is restored.

        After the plan, Rancher must not wait for the manager, which no longer acknowledges hooks.
        """
        settings = [str(override) for override, _ in overrides.pending_reverts(ctx, keep_strategy=False)]
        if settings:
            ctx.status.waiting(f"Restoring {', '.join(settings)}")
            # A run after a crash must not add the hooks again.
            await ctx.persist()
            try:
                await give_back(ctx, keep_strategy=False)
            except KubeError:
                # A webhook may refuse the strategy for hours, while Rancher drains nodes.
                await finish_drains(ctx, self._handled_of(ctx))
                raise
        unfinished = await finish_drains(ctx, self._handled_of(ctx))
        if unfinished is None:
            if ctx.status["singleNode"]:
                await unfinished_upgrade.forget(ctx)
            # No later phase reads the reported decisions.
            self._handled = Handled()
        return unfinished

    def _handled_of(self, ctx: ReconcileContext) -> Handled:
        """Return the observations of the plan that were handled; empty after a reconcile of another plan."""
        if self._handled.plan_uid != ctx.owner.uid:
            self._handled = Handled(plan_uid=ctx.owner.uid)
        return self._handled

    async def _log_anomalies(self, ctx: ReconcileContext, state: State) -> None:
        nodes, single, stale = ctx.status.known_nodes(), state.single is not None, state.target.stale
        observed = state.observed
        stores = (observed.secrets, observed.machines, observed.nodes)
        inputs = (*(store.resource_version for store in stores), nodes, stale)
        if inputs != state.handled.anomalies:
            self._anomalies.record(observed, plan_uid=ctx.owner.uid, nodes=nodes, single=single, stale=stale)
            state.handled.anomalies = inputs


async def _observe(ctx: ReconcileContext, handled: Handled) -> State:
    observed = Observed(
        secrets=await ctx.watch(MACHINE_PLANS),
        machines=await ctx.watch(LOCAL_MACHINES),
        nodes=await ctx.watch(MANAGED_NODES),
        jobs=await ctx.watch(UPGRADE_JOBS),
    )
    single, stale = ctx.status["singleNode"], frozenset(ctx.status["staleHooks"] or ())
    is_paused = bool(ctx.plan.spec.node_upgrade_option.pause_nodes)
    began = format_time(ctx.status.phase_began) if ctx.status.phase_began else ""
    return State(
        observed=observed,
        target=Target(ctx.status["releaseMetadata"]["os"], rancher.release(ctx), stale, began),
        single=single,
        handled=handled,
        requested=None if single else await rancher.observed_cluster(ctx),
        unknown_pause_nodes=unknown_pause_nodes(ctx, observed.nodes, observed.machines) if is_paused else "",
    )


async def _begin(ctx: ReconcileContext, state: State) -> None:
    """Override the settings and start Rancher, before the first node starts."""
    generation = None
    if state.cluster is not None:
        generation = rancher.next_generation(ctx, state.cluster, has_started=_has_started(ctx))
        if generation is None:
            return
        ctx.status["provisionGeneration"] = generation
        overrides.refresh_strategy(ctx, state.cluster)
        ledger.put(ctx, rancher.left_entries(state.cluster))
    elif _has_started(ctx):
        return
    if state.cluster is not None:
        # The message equals that of `_progress`, which saves a write.
        ctx.status.waiting(_message(_next_node(ctx, state), state, done=0, nodes=len(state.observed.nodes)))
    # The settings are recorded before they are changed.
    await ctx.persist()
    await overrides.apply_overrides(ctx)
    if state.cluster is not None:
        await remove_acknowledgements(ctx, state.observed.secrets.list())
        entry = overrides.strategy_entry(ctx) or {}
        await rancher.start_upgrade(ctx, state.cluster, original=entry.get("original"))
        # The observed cluster is out of date; the next reconcile checks its hooks.
        state.cluster = state.requested = None
    overrides.report_changed(ctx, began=None)


async def _report(ctx: ReconcileContext, state: State) -> None:
    """Record settings and milestones, which an earlier process may not have recorded, and estimate the end."""
    if ctx.status.phase not in _PHASES:
        return
    if not state.handled.settings:
        overrides.report_changed(ctx, began=ctx.status.phase_began)
        state.handled.settings = True
    remove_passed_estimate(ctx)
    if state.decisions == state.handled.decisions:
        return
    report_milestones(ctx, state.decisions)
    update_estimate(ctx, state.decisions)
    # If the write of a moved node is delayed or fails, the next reconcile estimates again.
    state.handled.decisions = None if moved_nodes(state.decisions) else state.decisions


def _has_started(ctx: ReconcileContext) -> bool:
    return len(_unstarted(ctx)) < len(ctx.status.known_nodes())


def _unstarted(ctx: ReconcileContext) -> frozenset[str]:
    states = {name: ctx.status.node_state(name) for name in ctx.status.known_nodes()}
    last = NodeState.IMAGE_PRELOADED.group
    return frozenset(name for name, state in states.items() if state is None or state.group <= last)


def _next_node(ctx: ReconcileContext, state: State) -> str:
    return next_node_message(state.observed, unstarted=_unstarted(ctx), release=state.target.release_kubernetes)


async def _decide(ctx: ReconcileContext, state: State) -> None:
    single, spec, uid = state.single, ctx.plan.spec, ctx.owner.uid
    decisions = decide_all(ctx.status, state.observed, plan_uid=uid, single=single, spec=spec, target=state.target)
    recorded = {single} if single else ctx.status.known_nodes()
    unseen = sorted(recorded - {view.name for view, _ in decisions})
    for name, missing in (await find_all_missing(ctx, unseen)).items() if unseen else ():
        if missing or single:
            state.missing[name] = missing or WITHOUT_NODE
            decisions.append(held_by(name, ctx.status.node_state(name), state.missing[name]))
        else:
            report_left(ctx, name)
    if not decisions:
        raise BadCluster("status.nodeUpgradeStatuses lists no nodes to upgrade; delete this plan and create a new one")
    state.set_back = rancher.set_back(ctx, state.requested) if state.requested is not None else None
    absent = {name: one.problem for name, one in state.missing.items()}
    around = Surroundings.of(state.observed, decisions, missing=absent, rancher=state.set_back)
    decisions, state.closed = hold_back(decisions, around)
    state.decisions = one_at_a_time(decisions)


async def _keep_hooks(ctx: ReconcileContext, state: State) -> None:
    """Add drain hooks again that other clients removed while nodes are left; record the new original before."""
    if state.cluster is None or not _unfinished(state):
        return
    # Rancher changes the Cluster's status, which is not read, several times for each node.
    seen = objects.spec(state.cluster), objects.annotations_of(state.cluster)
    if seen == state.handled.cluster:
        return
    change = overrides.changed_strategy(ctx, state.cluster)
    if change is not None:
        await ctx.persist()
        is_contested = state.handled.contest.record(ctx, state.cluster)
        await rancher.add_hooks(ctx, state.cluster, original=change.get("original"), is_contested=is_contested)
    elif await rancher.keep_original(ctx, state.cluster, overrides.strategy_entry(ctx)):
        state.handled.cluster = seen


async def _apply_effects(ctx: ReconcileContext, state: State) -> None:
    """Record the nodes' states, and apply the effects that do not start a node's upgrade."""
    for view, decision in state.decisions:
        for effect in decision.effects:
            if not starts_upgrade(effect) and not isinstance(effect, RestoreVMs):
                await apply_effect(ctx, view, effect)
            elif isinstance(effect, RestoreVMs) and decision.holds:
                await vm_restore.start(ctx, view.name, request=view.request)
        if decision.state is not None and not _restores_vms(decision):
            ctx.status.move_node(view.name, decision.state, message=decision.message)


async def _fail(ctx: ReconcileContext, state: State) -> Failed | None:
    for view, decision in state.decisions:
        if decision.failure:
            await _restore_vms(ctx, state)
            jobs = [job for type_, job in view.jobs.items() if type_ is not JobType.RESTORE_VM]
            failed = next((job for job in jobs if job.progress is Progress.FAILED), None)
            cause = decision.failure if failed is None else await job_failure_message(ctx.client, failed)
            return Failed(cause=f"node {view.name} upgrade failed: {cause}")
    return None


async def _start_nodes(ctx: ReconcileContext, state: State) -> None:
    """Start nodes, after a status write that conflicts if pauseNodes has changed meanwhile."""
    starts = [(view, one) for view, decision in state.decisions for one in decision.effects if starts_upgrade(one)]
    if not starts:
        return
    progress = await _progress(ctx, state)
    if isinstance(progress, Waiting):
        ctx.status.waiting(progress.message)
    ctx.status.observe_generation()
    await drain_entries.record(ctx, starts)
    await ctx.persist()
    for view, effect in starts:
        await apply_effect(ctx, view, effect)


async def _restore_vms(ctx: ReconcileContext, state: State) -> None:
    """Restore VMs after all other effects, so that an error delays no other node, and then record the node as done."""
    for view, decision in state.decisions:
        if decision.state is not None and _restores_vms(decision):
            await vm_restore.start(ctx, view.name, request=view.request)
            ctx.status.move_node(view.name, decision.state, message=decision.message)
    for view in [view for view, decision in moved_nodes(state.decisions) if decision.is_done]:
        await drain_entries.finish(ctx, view)


def _restores_vms(decision: Decision) -> bool:
    """Return True if VMs are restored when the node is done, and not during a drain that Rancher repeats."""
    return not decision.holds and any(isinstance(effect, RestoreVMs) for effect in decision.effects)


async def finish_drains(ctx: ReconcileContext, handled: Handled) -> Waiting | Failed | None:
    """Continue the nodes that Rancher drains again, without Rancher's cluster; return None once all are done.

    ImageCleanup calls it, too: hooks are acknowledged until the plan has succeeded.
    """
    state = await _observe(ctx, handled)
    for step in (_decide, _report, _apply_effects, _fail, _start_nodes):
        result = await step(ctx, state)
        if result is not None:
            return result
    progress = await _progress(ctx, state)
    if isinstance(progress, Waiting):
        return progress
    # The milestones of nodes cannot be recorded again in later phases.
    await ctx.events.sent()
    return None


async def _progress(ctx: ReconcileContext, state: State) -> Completed | Waiting:
    """Report the nodes that are not done; when all nodes are done, report remaining hooks and cordoned nodes."""
    unfinished = _unfinished(state)
    os, missing = state.target.release_os, state.missing
    waits = NodeWaits(ctx=ctx, observed=state.observed, release_os=os, cluster=state.cluster, missing=missing)
    if unfinished:
        busy = [await _node_progress(ctx, *pair) for pair in unfinished if _is_busy(*pair)][:MAX_NAMED_NODES]
        paused = paused_message(unfinished)
        shown = "; ".join([paused, *busy] if paused else busy)
        if shown:
            named = tuple(chain(waits.of_nodes(unfinished), waits.of_forgotten(unfinished)))
            found: Iterable[Wait] = named or waits.of_rancher((), kubernetes="", detail=shown)  # the hook was withdrawn
        else:
            shown, release = _next_node(ctx, state), state.target.release_kubernetes
            skipped = undrained(state.observed, unstarted=_unstarted(ctx), release=release)
            found = waits.of_rancher(skipped, kubernetes=release, detail=shown)
    else:
        cordoned = [view.name for view, _ in state.decisions if view.cordoned]
        delaying = delays(state.observed, cordoned=cordoned, multi_node=state.single is None)
        shown, found = describe_delays(delaying, limit=MAX_NAMED_NODES), waits.of_delays(delaying)
    if not shown and state.set_back is None:
        return Completed()
    shown = shown or str(state.set_back)
    is_held = state.set_back is not None or state.closed or any(is_down_before(*pair) for pair in unfinished)
    gate = gate_waits(ctx, state.closed, unfinished, rancher=state.set_back) if is_held else ()
    waiting = (*(state.handled.contest.waits(ctx) if state.handled.contest.times else ()), *gate, *found)
    done, nodes = len(state.decisions) - len(unfinished), len(state.decisions)
    return Waiting(message=_message(shown, state, done=done, nodes=nodes), waits=waiting)


def _unfinished(state: State) -> list[Decided]:
    return [(view, decision) for view, decision in state.decisions if not decision.is_done]


def _is_busy(view: NodeView, decision: Decision) -> bool:
    paused = NodeState.UPGRADE_PAUSED
    return decision.state is not paused and (decision.state is not None or view.state is paused or decision.holds)


async def _node_progress(ctx: ReconcileContext, view: NodeView, decision: Decision) -> str:
    start = next((effect for effect in decision.effects if isinstance(effect, StartJob | ResumeJob)), None)
    if start is not None:
        # The message equals that of the running Job, which saves a write.
        name = node_job_name(ctx.owner, node=start.node, job_type=start.job_type)
        progress, limit = Progress.RUNNING, BACKOFF_LIMIT
        job = JobState(namespace=HARVESTER_SYSTEM, name=name, uid="", progress=progress, backoff_limit=limit)
        return job_message(start.node, start.job_type, job)
    retried = next((job for job in view.jobs.values() if job.warning and not job.is_failing), None)
    if retried is None or decision.message != retried.warning:
        return decision.progress
    failure = await last_failure(ctx.client, ctx.informers.last_failures, retried)
    return f"{decision.progress}; last failure: {failure}" if failure else decision.progress


def _message(text: str, state: State, *, done: int, nodes: int) -> str:
    counted = f"{text} ({done} of {nodes} nodes done)"
    return f"{counted}; {state.unknown_pause_nodes}" if state.unknown_pause_nodes else counted
