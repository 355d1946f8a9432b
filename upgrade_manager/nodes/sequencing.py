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

from upgrade_manager.api.keys import JobType
from upgrade_manager.api.node_states import NodeState
from upgrade_manager.api.text import name_list
from upgrade_manager.facts import node_obstacles
from upgrade_manager.nodes.model import Decision, RemoveJob, ResumeJob, StartJob

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from upgrade_manager.nodes.model import Effect, NodeView

#: The first Job of a node's upgrade.
FIRST_JOBS = frozenset({JobType.PRE_DRAIN, JobType.SINGLE_NODE_UPGRADE})
#: The states of a node from its first Job to the end of its reboot.
IN_PROGRESS = frozenset(
    {NodeState.PRE_DRAINING, NodeState.PRE_DRAINED, NodeState.POST_DRAINING, NodeState.WAITING_REBOOT}
)


def start_or_pause(view: NodeView, job_type: JobType, *, running: NodeState) -> Decision | None:
    """Start, pause or resume the node's first Job; None once it runs or has finished."""
    if job_type in view.old_jobs:
        return replace_job(view, job_type, state=running if _is_started(view) else None)
    job = view.jobs.get(job_type)
    if job is not None and not job.suspended:
        return None
    if view.paused and not _is_started(view):
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


def one_at_a_time(decisions: Iterable[tuple[NodeView, Decision]]) -> list[tuple[NodeView, Decision]]:
    """Return the decisions in their order, without the starts that would make a second node unavailable."""
    pairs = list(decisions)
    # Decisions are newer than the recorded states: the next node may start as soon as a node is back.
    busy = [view.name for view, decision in pairs if _is_busy(view, decision)]
    result = []
    for view, decision in pairs:
        if not _starts_job(decision):
            result.append((view, decision))
        elif other := _waits_for(view, decision, busy, pairs):
            waiting = f"{view.name}: waiting until node {other} is upgraded and Ready"
            result.append((view, replace(decision, state=None, effects=(), progress=waiting)))
        else:
            result.append((view, decision))
            if decision.state is not NodeState.UPGRADE_PAUSED:
                busy.append(view.name)
    return result


def paused_message(decisions: Iterable[tuple[NodeView, Decision]]) -> str:
    """Return the message about paused nodes, which Rancher cordons before it sets their hooks."""
    views = [view for view, decision in decisions if decision.state is NodeState.UPGRADE_PAUSED]
    if not views:
        return ""
    verb = "is" if len(views) == 1 else "are"
    state = "paused (cordoned)" if all(view.cordoned for view in views) else "paused"
    resume = node_obstacles.paused(nodes=len(views)).ways_out[0]
    return f"{name_list([view.name for view in views])} {verb} {state}; {resume}"


def _is_started(view: NodeView) -> bool:
    return view.state is not None and view.state.group > NodeState.UPGRADE_PAUSED.group


def _waits_for(
    view: NodeView, decision: Decision, busy: Sequence[str], pairs: Sequence[tuple[NodeView, Decision]]
) -> str:
    """Return the node that must be upgraded before this node's Job starts; empty if the Job may start."""
    ignored = {view.name} | _behind(view, decision, pairs)
    return next((name for name in busy if name not in ignored), "") or _earlier_tier(view, pairs)


def _behind(view: NodeView, decision: Decision, pairs: Sequence[tuple[NodeView, Decision]]) -> frozenset[str]:
    """Return the drained nodes of later tiers that wait while Rancher drains this upgraded node again."""
    repeats = any(isinstance(effect, StartJob) and effect.repeated for effect in decision.effects)
    if not repeats or view.tier is None:
        return frozenset()
    return frozenset(
        other.name
        for other, found in pairs
        if found.state is NodeState.PRE_DRAINED and other.tier is not None and other.tier > view.tier
    )


def _earlier_tier(view: NodeView, pairs: Sequence[tuple[NodeView, Decision]]) -> str:
    """Return a node of an earlier tier that is not done, if this node's hook is stale.

    A node of an earlier tier waits for this node if this node is the only one that could take its VMs.
    """
    if not view.stale_hook or view.tier is None or view.state in IN_PROGRESS:
        return ""
    earlier = (
        other.name
        for other, decision in pairs
        if other.tier is not None
        and other.tier < view.tier
        and not _is_done(other, decision)
        and not (view.is_held and not has_target(other, pairs))
    )
    return next(earlier, "")


def _is_done(view: NodeView, decision: Decision) -> bool:
    state = decision.state or view.state
    return state is not None and state.upgraded


def _starts_job(decision: Decision) -> bool:
    return any(isinstance(effect, StartJob | ResumeJob) for effect in decision.effects)


def is_in_progress(view: NodeView, decision: Decision) -> bool:
    """Return True from the node's first Job to the end of its reboot, in which the node may be unavailable."""
    return not decision.is_forgotten and _state_before(view, decision) in IN_PROGRESS


def has_target(view: NodeView, pairs: Iterable[tuple[NodeView, Decision]]) -> bool:
    """Return True if another node takes the node's VMs; a witness node takes none."""
    return any(other.name != view.name and not other.is_witness and not other.cordoned for other, _ in pairs)


def _is_busy(view: NodeView, decision: Decision) -> bool:
    """Return True if the node may be unavailable; a node whose Job starts with this decision is still available."""
    repeated = any(job.repeated for job in view.jobs.values())
    lost = decision.holds and _is_done(view, decision) and not _starts_job(decision)
    return repeated or lost or is_in_progress(view, decision)


def _state_before(view: NodeView, decision: Decision) -> NodeState | None:
    """Return the decided state, or the recorded state if this decision starts a Job."""
    return view.state if decision.state is None or _starts_job(decision) else decision.state
