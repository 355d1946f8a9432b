"""phases/guarded_nodes.py runs the phase; `nodes` decides, effects.py applies, waits.py and report.py describe."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import structlog

from upgrade_manager.api.names import FIRST_ATTEMPT
from upgrade_manager.api.node_states import NodeState
from upgrade_manager.api.phases import PhaseName
from upgrade_manager.api.timestamps import format_time
from upgrade_manager.facts import machine_plan
from upgrade_manager.facts.machine_plan import machine_nodes
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import KubeError
from upgrade_manager.nodes.anomalies import AnomalyLog
from upgrade_manager.nodes.gate import Surroundings, hold_back, may_pause, reads_others, unobserved_beside, with_passing
from upgrade_manager.nodes.model import Decision, NodeView, RestoreVMs
from upgrade_manager.nodes.node_view import Observed, Shared, Target
from upgrade_manager.nodes.sequencing import applied, has_several_drains, is_gated, one_at_a_time, starts_upgrade
from upgrade_manager.pipeline import job_ledger, ledger, pause
from upgrade_manager.pipeline.errors import BadCluster
from upgrade_manager.pipeline.node_upgrade import drain_entries, effects, held_targets, holds, missing_nodes, vm_restore
from upgrade_manager.pipeline.node_upgrade.failure import node_failure
from upgrade_manager.pipeline.node_upgrade.managed_nodes import record_kubernetes, unknown_pause_nodes
from upgrade_manager.pipeline.node_upgrade.report import (
    describe_begin,
    describe_progress,
    has_started,
    moved_nodes,
    report,
)
from upgrade_manager.pipeline.node_upgrade.state import Handled, State
from upgrade_manager.pipeline.outcome import Failed, Phase, Waiting
from upgrade_manager.pipeline.selections import (
    LOCAL_CLUSTER,
    LOCAL_MACHINES,
    MACHINE_PLANS,
    MANAGED_NODES,
    UPGRADE_JOBS,
)
from upgrade_manager.pipeline.settings import left_entries, overrides, rancher, unfinished_upgrade
from upgrade_manager.pipeline.settings.giving_back import give_back
from upgrade_manager.runtime.concurrency import run_all

if TYPE_CHECKING:
    from collections.abc import Iterable

    from upgrade_manager.nodes.model import Decided, Decisions, Effect
    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.pipeline.outcome import PhaseResult

#: The phases whose settings last until the nodes are upgraded.
_CHANGES = (PhaseName.CLUSTER_UPGRADE, PhaseName.NODE_UPGRADE)
#: The stores that the gate reads beside the Nodes.
_READ_BY_GATE = (LOCAL_MACHINES, LOCAL_CLUSTER, MACHINE_PLANS, UPGRADE_JOBS)
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
            names += machine_nodes(machines.list())
            ctx.status["staleHooks"] = machine_plan.begun_drains(secrets.list()) or None
            record_kubernetes(ctx, nodes, names)
        for name in sorted(set(names)):
            if ctx.status.node_state(name) is None:
                ctx.status.move_node(name, NodeState.IMAGE_PRELOADED)
        return None

    async def resume(self, ctx: ReconcileContext) -> Failed | None:
        """Record the settings again that the failure has given back; nodes and their requests stay as recorded."""
        self._handled = Handled(plan_uid=ctx.owner.uid)
        await run_all(*(overrides.record_originals(ctx, phase) for phase in _CHANGES))
        return None

    async def run(self, ctx: ReconcileContext) -> PhaseResult:
        """Run the steps in order, until one returns a result."""
        state = await _observe(ctx, self._handled_of(ctx))
        if state.single is None:
            state.cluster = await rancher.watched_cluster(ctx)
        before = (_begin, self._log_anomalies, _decide, report)
        for step in (*before, _keep_hooks, _apply_effects, _fail, _pass_gate, _restore_vms):
            result = await step(ctx, state)
            if result is not None:
                return result
        if ctx.plan.spec.restore_vm:
            await vm_restore.report_failures(ctx)
        return await describe_progress(ctx, state)

    async def exit(self, ctx: ReconcileContext) -> Waiting | Failed | None:
        """Give all settings back, and handle the hooks that Rancher sets before its strategy is restored.

        After the plan, Rancher must not wait for the manager, which no longer acknowledges hooks.
        """
        settings = dict.fromkeys(str(one) for one, _ in overrides.pending_reverts(ctx, keep_strategy=False))
        if settings:
            ctx.status.waiting(f"Restoring {', '.join(settings)}")
            # A run after a crash must not add the hooks again.
            await ctx.persist()
            try:
                await give_back(ctx, keep_strategy=False)
            except KubeError as error:
                # A webhook may refuse the strategy for hours, while Rancher drains nodes.
                result = await finish_drains(ctx, self._handled_of(ctx))
                if result is None:
                    raise
                return replace(result, error=error) if isinstance(result, Waiting) else result
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
    began = format_time(ctx.status.phase_reached) if ctx.status.phase_reached else ""
    requested = None if single else await rancher.observed_cluster(ctx)
    generation = max(ctx.status["provisionGeneration"] or 0, rancher.generation(requested) if requested else 0)
    attempt = ctx.owner.attempt
    return State(
        observed=observed,
        target=Target(ctx.status["releaseMetadata"]["os"], rancher.release(ctx), stale, began, generation, attempt),
        single=single,
        handled=handled,
        requested=requested,
        unknown_pause_nodes=unknown_pause_nodes(ctx, observed.nodes, observed.machines) if is_paused else "",
    )


async def _begin(ctx: ReconcileContext, state: State) -> Waiting | None:
    """Override the settings and start Rancher, before the first node starts.

    After the patch the caches are older than the manager's own writes, so that the next reconcile decides.
    """
    generation = None
    if state.cluster is not None:
        generation = rancher.next_generation(ctx, state.cluster, has_started=has_started(ctx))
        if generation is None:
            await _change_again(ctx, state)
            return None
        ctx.status["provisionGeneration"] = generation
        overrides.refresh_strategy(ctx, state.cluster)
        ledger.put(ctx, left_entries.read(state.cluster))
    elif has_started(ctx):
        await _change_again(ctx, state)
        return None
    if state.cluster is not None:
        # The message equals that of `describe_progress`, which saves a write.
        ctx.status.waiting(describe_begin(ctx, state).message)
    # The settings are recorded before they are changed.
    await ctx.persist()
    await overrides.apply_overrides(ctx)
    if state.cluster is not None:
        await effects.remove_acknowledgements(ctx, state.observed.secrets.list())
        entry = overrides.strategy_entry(ctx) or {}
        await rancher.start_upgrade(ctx, state.cluster, original=entry.get("original"))
    overrides.report_changed(ctx, began=None)
    return describe_begin(ctx, state) if state.cluster is not None else None


async def _change_again(ctx: ReconcileContext, state: State) -> None:
    """Change the settings in a new attempt, once: the failure has given them back."""
    if ctx.owner.attempt == FIRST_ATTEMPT or state.handled.is_resumed:
        return
    await ctx.persist()
    await overrides.apply_overrides(ctx)
    state.handled.is_resumed = True


async def _decide(ctx: ReconcileContext, state: State) -> None:
    single, option = state.single, ctx.plan.spec.node_upgrade_option
    shared = Shared(state.target, ctx.owner.uid, single, frozenset(option.pause_nodes), ctx.plan.spec.restore_vm)
    decisions = await ctx.informers.decided_nodes.decide(ctx.status.nodes, state.observed, shared)
    await _record_requests(ctx, decisions.active)
    unseen = sorted(({single} if single else ctx.status.known_nodes()) - decisions.names)
    if unseen:
        decisions = await missing_nodes.add_missing(ctx, state, decisions, unseen)
    if not decisions:
        raise BadCluster("status.nodeUpgradeStatuses lists no nodes to upgrade; delete this plan and create a new one")
    state.set_back = rancher.set_back(ctx, state.requested) if state.requested is not None else None
    decisions, around = await _surroundings(ctx, state, decisions)
    decisions, closed = hold_back(decisions, around)
    state.decisions = one_at_a_time(decisions, without_target=around.without_target)
    state.closed = with_passing(closed, state.decisions.active)


async def _surroundings(ctx: ReconcileContext, state: State, decisions: Decisions) -> tuple[Decisions, Surroundings]:
    """Return what the gate reads, and the decisions without reboots that a pause holds."""
    beside = unobserved_beside(state.observed, decisions)
    absent = {**state.missing, **(await missing_nodes.find_missing_of(ctx, beside) if beside else {})}
    held = {view.name for view, _ in decisions.active if view.is_held}
    waiting = await held_targets.find_waiting(ctx, state.observed, decisions.active, held=held) if held else {}
    is_asked = may_pause(ctx.plan.spec) or ctx.status.has_holds
    decisions, paused = holds.hold(ctx, decisions) if is_asked else (decisions, {})
    around = Surroundings.of(
        state.observed, decisions, missing=absent, waiting=waiting, rancher=state.set_back, paused=paused
    )
    if reads_others(decisions.active):
        around = replace(around, holder=await effects.holder_at_gate(ctx))
    return decisions, around


async def _keep_hooks(ctx: ReconcileContext, state: State) -> None:
    """Add drain hooks again that other clients removed while nodes are left; record the new original before."""
    if state.cluster is None:
        return
    # Rancher changes the Cluster's status, which is not read, several times for each node.
    seen = objects.spec(state.cluster), objects.annotations_of(state.cluster)
    if seen == state.handled.cluster:
        return
    rancher.report_added_hooks(ctx, state.cluster)
    if not state.decisions.left:
        return
    change = overrides.changed_strategy(ctx, state.cluster)
    if change is not None:
        await ctx.persist()
        is_contested = state.handled.contest.record(ctx, state.cluster)
        await rancher.add_hooks(ctx, state.cluster, original=change.get("original"), is_contested=is_contested)
    elif await rancher.keep_original(ctx, state.cluster, overrides.strategy_entry(ctx)):
        state.handled.cluster = seen


async def _apply_effects(ctx: ReconcileContext, state: State) -> None:
    """Record the nodes' states, and apply the effects that pass no gate."""
    for view, decision in applied(state.decisions.active):
        for effect in decision.effects:
            if not is_gated(view, effect) and not isinstance(effect, RestoreVMs):
                await effects.apply_effect(ctx, view, effect)
            elif isinstance(effect, RestoreVMs) and decision.holds:
                await vm_restore.start(ctx, view.name, request=view.request)
        if not _gated(view, decision):
            _record(ctx, view, decision)


async def _record_requests(ctx: ReconcileContext, decisions: Iterable[Decided]) -> None:
    """Record the requests that are seen; a withdrawn one is written at once, because its hook may return."""
    for view, _ in decisions:
        if view.secret and view.name in ctx.status.nodes:
            ctx.status.record_requests(view.name, view.requests)
    if any(view.is_used_up for view, _ in decisions):
        await ctx.persist()


def _gated(view: NodeView, decision: Decision) -> list[Effect]:
    return [effect for effect in decision.effects if is_gated(view, effect)]


def _record(ctx: ReconcileContext, view: NodeView, decision: Decision) -> None:
    if decision.state is not None and not _restores_vms(decision):
        ctx.status.move_node(view.name, decision.state, message=decision.message)
    if decision.state is NodeState.WAITING_REBOOT and view.secret and not view.pre_drain.pending:
        record = ctx.status.node_requests(view.name)
        ctx.status.record_requests(view.name, replace(record, rebooted=view.request_number))


async def _fail(ctx: ReconcileContext, state: State) -> Failed | None:
    for view, decision in state.decisions.active:
        if decision.failure:
            await _restore_vms(ctx, state)
            return await node_failure(ctx, view, decision)
    return None


async def _pass_gate(ctx: ReconcileContext, state: State) -> None:
    """Start and drain nodes, after a status write that conflicts if the plan has changed meanwhile, as pauseNodes may.

    The step comes after `_fail`: a plan that fails drains no further node.
    """
    steps = [(view, effect) for view, decision in state.decisions.active for effect in _gated(view, decision)]
    if not steps:
        return
    await _describe_steps(ctx, state, begun=[view for view, effect in steps if starts_upgrade(effect)])
    await ctx.persist_pinned()
    if state.single is None:
        found = ctx.informers.interrupted(*_READ_BY_GATE)
        secrets = [MACHINE_PLANS] if has_several_drains(state.decisions.active) and MACHINE_PLANS not in found else []
        if not await ctx.informers.confirm(ctx.client, *secrets, *found, MANAGED_NODES):
            await ctx.persist_pinned()
    # A write that the API server throttles is decided again, because the gate may close meanwhile.
    once = replace(ctx, client=ctx.client.without_retries())
    for view, effect in steps:
        is_taken = await _still_passes(ctx, state, view, effect) and await effects.apply_effect(once, view, effect)
        if not is_taken:
            log.info("gate or hook has changed meanwhile, step not taken", node=view.name)
            ctx.status.record_requests(view.name, view.requests)


async def _describe_steps(ctx: ReconcileContext, state: State, *, begun: list[NodeView]) -> None:
    """Set what the status says once steps pass the gate; the caller writes it before the first of them."""
    for view, decision in state.decisions.active:
        if _gated(view, decision):
            _record(ctx, view, decision)
            effects.record_acknowledgement(ctx, view, decision)
    progress = await describe_progress(ctx, state)
    if isinstance(progress, Waiting):
        ctx.status.waiting(progress.message)
    if begun:
        await drain_entries.record(ctx, begun)
    if ctx.status["pausedSince"]:
        # Other nodes hold.
        await pause.leave(ctx)


async def _still_passes(ctx: ReconcileContext, state: State, view: NodeView, effect: Effect) -> bool:
    """Decide again, until no cache has changed during the requests of the decision; the step follows at once."""
    while True:
        latest = await _observe(ctx, state.handled)
        versions = latest.observed.versions
        await _decide(ctx, latest)
        now = await _observe(ctx, state.handled)
        if (now.observed.versions, now.requested) == (versions, latest.requested):
            return any(
                one.name == view.name and effect in _gated(one, decision) for one, decision in latest.decisions.active
            )


async def _restore_vms(ctx: ReconcileContext, state: State) -> None:
    """Restore VMs after all other effects, so that an error delays no other node, and then record the node as done."""
    for view, decision in state.decisions.active:
        if decision.state is not None and _restores_vms(decision):
            await vm_restore.start(ctx, view.name, request=view.request)
            ctx.status.move_node(view.name, decision.state, message=decision.message)
    if state.left:
        await vm_restore.start_of_left(ctx, state.left)
    for view in [view for view, decision in moved_nodes(state.decisions.active) if decision.is_done]:
        await drain_entries.finish(ctx, view)


def _restores_vms(decision: Decision) -> bool:
    """Return True if VMs are restored when the node is done, and not during a drain that Rancher repeats."""
    return not decision.holds and any(isinstance(effect, RestoreVMs) for effect in decision.effects)


async def finish_drains(ctx: ReconcileContext, handled: Handled) -> Waiting | Failed | None:
    """Continue the nodes that Rancher drains again, without Rancher's cluster; return None once all are done.

    ImageCleanup calls it, too: hooks are acknowledged until the plan has succeeded.
    """
    state = await _observe(ctx, handled)
    for step in (_decide, report, _apply_effects, _fail, _pass_gate):
        result = await step(ctx, state)
        if result is not None:
            return result
    progress = await describe_progress(ctx, state)
    if isinstance(progress, Waiting):
        return progress
    # The milestones of nodes cannot be recorded again in later phases.
    await ctx.events.sent(ctx.raw)
    return None
