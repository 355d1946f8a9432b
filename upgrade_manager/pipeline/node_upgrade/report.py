"""Reports the node upgrade: message and waits, milestones of nodes as events, and the estimated end in the status.

`phase.py` calls it; waits.py and gate_waits.py have the waits, nodes/milestones.py and nodes/estimate.py decide.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from upgrade_manager.api.attempts import attempt_began
from upgrade_manager.api.keys import HARVESTER_SYSTEM
from upgrade_manager.api.node_states import NodeState, is_in
from upgrade_manager.api.phases import PhaseName
from upgrade_manager.api.timestamps import format_time, parse_time
from upgrade_manager.blockers.job_failures import last_failure
from upgrade_manager.facts.job_state import JobState, Progress
from upgrade_manager.kube import objects
from upgrade_manager.nodes.drain import job_message
from upgrade_manager.nodes.estimate import completion, finishes
from upgrade_manager.nodes.gate import is_down_before, may_pause
from upgrade_manager.nodes.milestones import MilestoneReason, reached
from upgrade_manager.nodes.model import Decision, NodeView, ResumeJob, StartJob
from upgrade_manager.nodes.next_node import next_node_message, undrained
from upgrade_manager.nodes.pending_hooks import delays, describe_delays
from upgrade_manager.nodes.sequencing import paused_message
from upgrade_manager.pipeline.node_upgrade import holds
from upgrade_manager.pipeline.node_upgrade.gate_waits import gate_waits
from upgrade_manager.pipeline.node_upgrade.lost_hooks import report_undrained
from upgrade_manager.pipeline.node_upgrade.missing_nodes import find_hooked
from upgrade_manager.pipeline.node_upgrade.waits import NodeWaits
from upgrade_manager.pipeline.outcome import Completed, Waiting
from upgrade_manager.pipeline.pause import user_of
from upgrade_manager.pipeline.settings import overrides
from upgrade_manager.resources.jobs import BACKOFF_LIMIT, node_job_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from upgrade_manager.blockers.wait import Wait
    from upgrade_manager.nodes.model import Decided, Decisions
    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.pipeline.node_upgrade.state import State


PHASE = PhaseName.NODE_UPGRADE.active
#: The status field of the estimate, which changes only with the state of a node, or after the estimated time.
ESTIMATE = "estimatedCompletion"
#: Milestones that a user's change of the plan causes.
_CAUSED_BY_USERS = (MilestoneReason.NODE_PAUSED, MilestoneReason.NODE_RESUMED)
#: The phase values with which milestones are recorded.
_PHASES = frozenset({PhaseName.NODE_UPGRADE.active, PhaseName.NODE_UPGRADE.completed})
#: The states of nodes that have started.
_STARTED = frozenset(state for state in NodeState if state.group > NodeState.IMAGE_PRELOADED.group)
#: Nodes that a message names.
MAX_NAMED_NODES = 3


async def report(ctx: ReconcileContext, state: State) -> None:
    """Record settings and milestones, which an earlier process may not have recorded, and estimate the end."""
    if ctx.status.phase not in _PHASES:
        return
    if not state.handled.settings:
        overrides.report_changed(ctx, began=ctx.status.phase_began)
        state.handled.settings = True
    remove_passed_estimate(ctx)
    if state.decisions == state.handled.decisions:
        return
    decisions, handled = state.decisions, state.handled
    report_milestones(ctx, decisions.active if handled.milestones else decisions.all())
    handled.milestones = True
    update_estimate(ctx, decisions)
    # If the write of a moved node is delayed or fails, the next reconcile estimates again.
    handled.decisions = None if moved_nodes(decisions.active) else decisions


def report_milestones(ctx: ReconcileContext, decisions: Iterable[Decided]) -> None:
    """Record the milestones that nodes have reached, each once, and nodes that Rancher has upgraded undrained."""
    if passed := [view for view, _ in decisions if view.is_upgraded_at_hook]:
        report_undrained(ctx, passed)
    for view, decision in decisions:
        # Nearly all nodes of a large cluster are done, or wait for Rancher.
        if (not (view.jobs or view.old_jobs) and decision.state is None) or _is_done(ctx, view.name):
            continue
        for milestone in reached(view, decision, now=ctx.now()):
            message = milestone.message
            if milestone.reason in _CAUSED_BY_USERS:
                message = f"{message} (last change of the plan: {user_of(ctx)})"
            ctx.events.once(ctx.raw, milestone.reason, message, about=view.name, phase=PHASE, at=milestone.at)


def _is_done(ctx: ReconcileContext, node: str) -> bool:
    """Return True for a node whose milestones are reported, in this or an earlier attempt."""
    is_reported = ctx.events.is_handled(ctx.raw, MilestoneReason.NODE_UPGRADED, node)
    return is_reported or _was_upgraded(ctx, node)


def _was_upgraded(ctx: ReconcileContext, node: str) -> bool:
    """Return True for a node that was upgraded in an earlier attempt."""
    began = parse_time(attempt_began(objects.status(ctx.raw)))
    since = parse_time(((ctx.status["nodeUpgradeStatuses"] or {}).get(node) or {}).get("since"))
    state = ctx.status.node_state(node)
    is_done = state is not None and state.upgraded
    return is_done and began is not None and since is not None and since < began


def update_estimate(ctx: ReconcileContext, decisions: Decisions) -> None:
    """Estimate the end again when a node finishes; remove the estimate when a node is paused."""
    moved = moved_nodes(decisions.active)
    if any(decision.is_done and finishes(view, decision) for view, decision in moved):
        found = completion(decisions, now=ctx.now())
        ctx.status[ESTIMATE] = format_time(found) if found is not None else None
    elif any(decision.state is NodeState.UPGRADE_PAUSED for _, decision in moved):
        ctx.status[ESTIMATE] = None


def remove_passed_estimate(ctx: ReconcileContext) -> None:
    """Remove an estimate whose time has passed; the caller may estimate again afterwards."""
    known = parse_time(ctx.status[ESTIMATE])
    if known is not None and known < ctx.now():
        ctx.status[ESTIMATE] = None


def moved_nodes(decisions: Iterable[Decided]) -> list[Decided]:
    """Return the nodes whose state differs from the recorded one."""
    return [(view, decision) for view, decision in decisions if decision.state not in {None, view.state}]


def has_started(ctx: ReconcileContext) -> bool:
    """Return True once a node has started."""
    return any(is_in(entry, _STARTED) for entry in ctx.status.nodes.values())


def unstarted_nodes(ctx: ReconcileContext) -> frozenset[str]:
    """Return the recorded nodes that have not started."""
    return frozenset(name for name, entry in ctx.status.nodes.items() if not is_in(entry, _STARTED))


def describe_begin(ctx: ReconcileContext, state: State) -> Waiting:
    """Report that Rancher has to reach the first node; the observed Cluster is older than the manager's patch."""
    os = state.target.release_os
    waits = NodeWaits(ctx=ctx, observed=state.observed, release_os=os, cluster=None, missing={})
    done = counted(0, len(state.observed.nodes))
    shown, found = _between_nodes(ctx, state, waits, done=done)
    message = progress_message(shown, state, done=done)
    return Waiting(message=message, waits=tuple(found))


def _between_nodes(ctx: ReconcileContext, state: State, waits: NodeWaits, *, done: str) -> tuple[str, Iterable[Wait]]:
    release = state.target.release_kubernetes
    skipped = undrained(state.observed, unstarted=unstarted_nodes(ctx), release=release)
    shown = next_node_message(skipped, release=release)
    return shown, waits.of_rancher(skipped, kubernetes=release, detail=shown, counted=done)


async def describe_progress(ctx: ReconcileContext, state: State) -> Completed | Waiting:
    """Report the nodes that are not done; when all nodes are done, report remaining hooks and cordoned nodes."""
    unfinished, decisions = state.decisions.unfinished, state.decisions
    os, missing = state.target.release_os, state.missing
    done = counted(len(decisions) - decisions.left, len(decisions))
    waits = NodeWaits(ctx=ctx, observed=state.observed, release_os=os, cluster=state.cluster, missing=missing)
    if decisions.left:
        busy = [await _node_progress(ctx, *pair) for pair in unfinished if _is_busy(*pair)][:MAX_NAMED_NODES]
        paused = paused_message(unfinished)
        shown = "; ".join([paused, *busy] if paused else busy)
        if shown:
            named = tuple(chain(waits.of_nodes(unfinished), waits.of_forgotten(unfinished)))
            # Such as a node that was paused, and whose hook Rancher has withdrawn.
            found: Iterable[Wait] = named or waits.of_rancher((), kubernetes="", detail=shown, counted=done)
        else:
            shown, found = _between_nodes(ctx, state, waits, done=done)
    else:
        cordoned = [view.name for view, _ in decisions.active if view.cordoned]
        hooked = await find_hooked(ctx, state.observed)
        delaying = delays(state.observed, cordoned=cordoned, multi_node=state.single is None, missing=hooked)
        shown, found = describe_delays(delaying, limit=MAX_NAMED_NODES), waits.of_delays(delaying)
    if not shown and state.set_back is None:
        return Completed()
    shown = shown or str(state.set_back)
    is_held = state.set_back is not None or state.closed or any(is_down_before(*pair) for pair in unfinished)
    gate = gate_waits(ctx, state.closed, unfinished, rancher=state.set_back, missing=missing) if is_held else ()
    waiting = (*(state.handled.contest.waits(ctx) if state.handled.contest.times else ()), *gate, *found)
    held = holds.where(ctx, state) if may_pause(ctx.plan.spec) else ""
    return Waiting(message=progress_message(shown, state, done=done), waits=waiting, held=held)


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


def counted(done: int, nodes: int) -> str:
    """Return the count of nodes that are done."""
    return f"{done} of {nodes} nodes done"


def progress_message(text: str, state: State, *, done: str) -> str:
    """Return the message with the count of done nodes, and names in pauseNodes that match no node."""
    shown = f"{text} ({done})"
    return f"{shown}; {state.unknown_pause_nodes}" if state.unknown_pause_nodes else shown
