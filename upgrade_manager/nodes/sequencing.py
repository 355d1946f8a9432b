"""The order in which nodes are upgraded: one at a time, while paused nodes wait.

The phase (pipeline/node_upgrade/phase.py) calls it with all decisions, and writes what it lets through.

Rancher limits unavailable machines per role only, and a failed upgrade may leave hooks of several nodes pending. Two
unavailable nodes can cost a cluster of three its quorum, so a node waits while another one is upgraded, or was upgraded
and is down.

Rancher finishes one tier of machines (`machine_plan.tier_of`) before the next. A node of a later tier with a stale hook
therefore waits for the earlier tiers: otherwise the manager would hold the earlier tiers, which Rancher upgrades first.

A node in pauseNodes whose upgrade is due gets its first Job, suspended:

    listed   -> Job suspended  UpgradePaused
    removed  -> Job resumed    PreDraining, SingleNodeUpgrading

A node that has started is not paused. Its start is recorded first (`starts_upgrade`), pinned to the plan's
resourceVersion: if pauseNodes changed meanwhile, the write conflicts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import ANNOTATION_PRE_HOOK, JobType
from upgrade_manager.api.node_states import NodeState
from upgrade_manager.api.text import name_list
from upgrade_manager.facts import node_obstacles
from upgrade_manager.facts.job_state import Progress
from upgrade_manager.nodes.model import AcknowledgeHook, Decision, RemoveJob, ResumeJob, StartJob

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from upgrade_manager.nodes.model import Decided, Decisions, Effect, NodeView

#: The first Job of a node's upgrade, which lets its VMs leave or stops them.
FIRST_JOBS = frozenset({JobType.PRE_DRAIN, JobType.SINGLE_NODE_UPGRADE})
#: The states of a node from its first Job to the end of its reboot.
IN_PROGRESS = frozenset(
    {NodeState.PRE_DRAINING, NodeState.PRE_DRAINED, NodeState.POST_DRAINING, NodeState.WAITING_REBOOT}
)
#: The states after Rancher's drain.
_PAST_DRAIN = frozenset({NodeState.POST_DRAINING, NodeState.WAITING_REBOOT})


def start_or_pause(view: NodeView, job_type: JobType, *, running: NodeState) -> Decision | None:
    """Start, pause or resume the node's first Job; None once it runs or has finished."""
    if job_type in view.old_jobs:
        return replace_job(view, job_type, state=running if is_started(view) else None)
    job = view.jobs.get(job_type)
    if job is not None and not job.suspended:
        return None
    if view.paused and not is_started(view):
        start = StartJob(node=view.name, job_type=job_type, suspended=True, request=view.request)
        return Decision(state=NodeState.UPGRADE_PAUSED, effects=() if job else (start,))
    effect: Effect = StartJob(node=view.name, job_type=job_type, request=view.request)
    if job is not None:
        effect = ResumeJob(node=view.name, job_type=job_type)
    return Decision(state=running, effects=(effect,))


def replace_job(view: NodeView, job_type: JobType, *, state: NodeState | None) -> Decision:
    """Remove the Job of an earlier request; the next reconcile creates the one of this request."""
    remove = RemoveJob(node=view.name, job_type=job_type)
    progress = f"{view.name}: replacing its {job_type} Job, because Rancher drains it again"
    return Decision(state=state, progress=progress, effects=(remove,), holds=True)


def starts_upgrade(effect: Effect) -> bool:
    """Return True for effects after which the node can no longer be paused."""
    match effect:
        case StartJob(job_type=job_type, suspended=suspended):
            return job_type in FIRST_JOBS and not suspended
        case ResumeJob():
            return True
        case _:
            return False


def is_gated(view: NodeView, effect: Effect) -> bool:
    """Return True for the steps that lead to a drain or to a reboot; an acknowledged post-drain hook ends the drain.

    The gate lets the acknowledgement of the pre-drain hook pass, and with it the post-drain Job. A node that an earlier
    upgrade has drained, or whose hook another client has acknowledged, has no such acknowledgement.
    """
    if isinstance(effect, StartJob) and effect.job_type is JobType.POST_DRAIN:
        return view.pre_drain.pending or not view.has_passed
    return starts_upgrade(effect) or _is_acknowledgement(effect)


def begins_again(view: NodeView, effect: Effect) -> bool:
    """Return True for the post-drain Job of a node that has had one, in an earlier attempt or until its deletion.

    A pause holds it: nothing of the node runs. No other row does, because the node is drained.
    """
    is_post_drain = isinstance(effect, StartJob) and effect.job_type is JobType.POST_DRAIN
    return is_post_drain and view.state is NodeState.POST_DRAINING


def held_back(view: NodeView, decision: Decision, *, reason: str) -> Decision:
    """Return the decision without the steps that lead to a drain."""
    state = decision.state
    if _starts_job(decision):
        state = state if state and state.upgraded else None
    elif state is NodeState.PRE_DRAINED:
        # The node reaches this state with the acknowledgement.
        state = NodeState.PRE_DRAINING
    left = tuple(effect for effect in decision.effects if not is_gated(view, effect))
    return replace(decision, state=state, effects=left, progress=f"{view.name}: waiting {reason}", holds=True)


def one_at_a_time(decisions: Decisions, *, without_target: Collection[str] = ()) -> Decisions:
    """Return the decisions in their order, without the steps that would make a second node unavailable.

    An acknowledgement, after which Rancher drains the node, takes the place of the one node like a start. Of several
    nodes whose Jobs are complete, Rancher needs that of the lowest tier first. `without_target` are nodes whose VMs
    have no other node.
    """
    pairs = decisions.active
    waiting = _waiting_drains(pairs)
    # Decisions are newer than the recorded states: the next node may start as soon as a node is back.
    busy = [view.name for view, decision in pairs if _is_busy(view, decision)]
    result = []
    for view, decision in pairs:
        if view.name in waiting:
            result.append((view, held_back(view, decision, reason=_until(waiting[view.name]))))
        elif not _starts_job(decision):
            result.append((view, decision))
        elif other := _waits_for(view, busy, decisions, without_target):
            held = f"{view.name}: waiting {_until(other)}"
            result.append((view, replace(decision, state=None, effects=(), progress=held)))
        else:
            result.append((view, decision))
            if decision.state is not NodeState.UPGRADE_PAUSED:
                busy.append(view.name)
    return decisions.with_active(result)


def _until(node: str) -> str:
    return f"until node {node} is upgraded and Ready"


def _waiting_drains(pairs: Sequence[Decided]) -> dict[str, str]:
    """Return the nodes whose pre-drain hooks are not acknowledged yet, each with the node that it waits for."""
    away = [view.name for view, decision in pairs if _is_away(view, decision)]
    waiting = {}
    for view, decision in sorted(pairs, key=_rancher_order):
        if any(map(_is_acknowledgement, decision.effects)):
            ignored = {view.name} | _behind(view, pairs)
            other = next((name for name in away if name not in ignored), "") or drained_before(view, pairs)
            if other:
                waiting[view.name] = other
            else:
                away.append(view.name)
    return waiting


def _rancher_order(pair: Decided) -> tuple[bool, int, str]:
    tier = pair[0].tier
    return tier is None, tier or 0, pair[0].name


def drained_before(view: NodeView, pairs: Sequence[Decided]) -> str:
    """Return a node of an earlier tier that Rancher drains before this node; empty without such a node."""
    if view.post_drain.requested:
        return ""
    earlier = (
        other.name for other, decision in pairs if _is_earlier(other, view) and _is_drained_first(other, decision)
    )
    return next(earlier, "")


def applied(pairs: Sequence[Decided]) -> Sequence[Decided]:
    """Return the decisions to apply: a plan that fails starts no Job, because no node reboots after its end."""
    if not any(decision.failure for _, decision in pairs):
        return pairs
    return [pair for pair in pairs if not any(isinstance(effect, StartJob) for effect in pair[1].effects)]


def has_several_drains(pairs: Iterable[Decided]) -> bool:
    """Return True if several nodes have annotations of drains, of which their Secrets show the order."""
    return sum(view.drains for view, _ in pairs) > 1


def _is_drained_first(view: NodeView, decision: Decision) -> bool:
    """Return True if the node's pre-drain Job runs, or if Rancher drains the node again."""
    if is_in_progress(view, decision):
        return _state_before(view, decision) is NodeState.PRE_DRAINING
    return _is_done(view, decision) and view.drains and (view.pre_drain.pending or bool(view.cordon_error))


def paused_message(decisions: Iterable[Decided]) -> str:
    """Return the message about paused nodes, which Rancher cordons before it sets their hooks."""
    views = [view for view, decision in decisions if decision.state is NodeState.UPGRADE_PAUSED]
    if not views:
        return ""
    verb = "is" if len(views) == 1 else "are"
    state = "paused (cordoned)" if all(view.cordoned for view in views) else "paused"
    resume = node_obstacles.paused(nodes=len(views)).ways_out[0]
    return f"{name_list([view.name for view in views])} {verb} {state}; {resume}"


def is_started(view: NodeView) -> bool:
    """Return True once the upgrade of the node has started."""
    return view.state is not None and view.state.group > NodeState.UPGRADE_PAUSED.group


def _waits_for(view: NodeView, busy: Sequence[str], decisions: Decisions, without_target: Collection[str]) -> str:
    """Return the node that must be upgraded before this node's Job starts; empty if the Job may start."""
    ignored = {view.name} | _behind(view, decisions.active)
    return next((name for name in busy if name not in ignored), "") or _earlier_tier(view, decisions, without_target)


def _behind(view: NodeView, pairs: Sequence[Decided]) -> frozenset[str]:
    """Return the nodes of later tiers that are Ready, and to which nothing happens before this node's tier is finished.

    They may be drained already, or prepared, if Rancher drains an upgraded node again, or after an earlier upgrade.
    """
    return frozenset(
        other.name
        for other, found in pairs
        if _is_earlier(view, other) and other.ready and _waits_for_tier(other, found)
    )


def waits_for_tier(view: NodeView, decision: Decision, earlier: NodeView) -> bool:
    """Return True for a node that is upgraded only after the other node's tier."""
    return _is_earlier(earlier, view) and _waits_for_tier(view, decision)


def _waits_for_tier(view: NodeView, decision: Decision) -> bool:
    """Return True for a node that Rancher has drained, or whose drain waits, and on which no Job runs."""
    is_prepared = view.pre_drain.pending and not view.post_drain.requested and not _starts_job(decision)
    is_idle = all(job.progress is not Progress.RUNNING for job in (*view.jobs.values(), *view.old_jobs.values()))
    return _waits_for_rancher(view, decision) or (is_prepared and is_idle and view.state in IN_PROGRESS)


def _is_earlier(view: NodeView, other: NodeView) -> bool:
    """Return True if Rancher finishes the node's tier before that of the other node."""
    return view.tier is not None and other.tier is not None and view.tier < other.tier


def _waits_for_rancher(view: NodeView, decision: Decision) -> bool:
    """Return True for a node that is drained, and whose Kubernetes Rancher upgrades."""
    is_drained = decision.state is NodeState.PRE_DRAINED and not view.pre_drain.pending
    return is_drained or (decision.state is None and view.under_way and not view.post_drain.requested)


def _earlier_tier(view: NodeView, decisions: Decisions, without_target: Collection[str]) -> str:
    """Return the first node of an earlier tier that is not done, if this node's hook is stale.

    A node of an earlier tier waits for this node if this node is the only one that could take its VMs, and is drained:
    Rancher upgrades a node that still waits for its drain after the earlier tiers.
    """
    if not view.stale_hook or view.tier is None or view.state in IN_PROGRESS:
        return ""
    earlier = (
        other.name
        for other, decision in (*decisions.active, *decisions.waiting.values())
        if _is_earlier(other, view)
        and not _is_done(other, decision)
        and not decision.is_forgotten
        and not (view.was_drained and other.name in without_target)
    )
    return min(earlier, default="")


def _is_done(view: NodeView, decision: Decision) -> bool:
    state = decision.state or view.state
    return state is not None and state.upgraded


def _is_acknowledgement(effect: Effect) -> bool:
    return isinstance(effect, AcknowledgeHook) and effect.annotation == ANNOTATION_PRE_HOOK


def _starts_job(decision: Decision) -> bool:
    return any(isinstance(effect, StartJob | ResumeJob) for effect in decision.effects)


def is_in_progress(view: NodeView, decision: Decision) -> bool:
    """Return True from the node's first Job to the end of its reboot, in which the node may be unavailable."""
    return not decision.is_forgotten and _state_before(view, decision) in IN_PROGRESS


def has_target(view: NodeView, pairs: Iterable[Decided]) -> bool:
    """Return True if another node takes the node's VMs; a witness node takes none."""
    return any(other.name != view.name and not other.is_witness and not other.cordoned for other, _ in pairs)


def _is_busy(view: NodeView, decision: Decision) -> bool:
    """Return True if the node may be unavailable; a node whose Job starts with this decision is still available."""
    repeated = any(job.repeated for job in view.jobs.values())
    return repeated or _is_lost(view, decision) or is_in_progress(view, decision) or _is_under_way(view, decision)


def _is_lost(view: NodeView, decision: Decision) -> bool:
    return decision.holds and _is_done(view, decision) and not _starts_job(decision)


def _is_away(view: NodeView, decision: Decision) -> bool:
    """Return True from the acknowledgement of the node's drain until it is done, and while it is not Ready."""
    is_busy = is_in_progress(view, decision)
    is_past = is_busy and _state_before(view, decision) in _PAST_DRAIN
    is_lost = _is_lost(view, decision) and not view.ready
    is_down = is_lost or (is_busy and not view.ready)
    return is_past or is_down or view.may_be_acknowledged or _is_under_way(view, decision)


def _is_under_way(view: NodeView, decision: Decision) -> bool:
    """Return True while Rancher drains the node or may upgrade it, also if another client has acknowledged the hook."""
    is_acknowledged = bool(view.pre_drain.requested) and not view.pre_drain.pending
    return view.under_way or (is_acknowledged and not decision.is_done)


def _state_before(view: NodeView, decision: Decision) -> NodeState | None:
    """Return the decided state, or the recorded state if this decision starts a Job."""
    return view.state if decision.state is None or _starts_job(decision) else decision.state
