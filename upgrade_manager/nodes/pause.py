"""Nodes that are held back: when its turn comes, a listed node's first Job exists, but suspended.

    listed      -> Job suspended  UpgradePaused
    taken off   -> Job resumed    PreDraining, SingleNodeUpgrading

The list holds back a beginning and stops nothing: a node that is recorded as begun, or whose Job runs, has begun.
Whoever begins a node records that first (`begins`). The record is pinned to the plan that was read, so that a name
which has been put on the list meanwhile, and not been seen yet, is seen before anything happens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import JobType
from upgrade_manager.api.node_states import NodeState
from upgrade_manager.nodes.decision import Decision
from upgrade_manager.nodes.effects import ResumeJob, StartJob

if TYPE_CHECKING:
    from upgrade_manager.nodes.effects import Effect
    from upgrade_manager.nodes.model import NodeView

#: The field that users take a name off.
LIST = "spec.nodeUpgradeOption.pauseNodes"
#: With these a node begins.
FIRST_JOBS = frozenset({JobType.PRE_DRAIN, JobType.SINGLE_NODE_UPGRADE})


def first_step(view: NodeView, job_type: JobType, *, begun: NodeState) -> Decision | None:
    """What is due before the node's first Job runs; None once it does, or has ended. `begun` is the state then."""
    job = view.jobs.get(job_type)
    if job is not None and not job.suspended:
        return None
    if _is_held(view):
        start = StartJob(node=view.name, job_type=job_type, suspended=True)
        waits = f"node {view.name} to be taken off {LIST}"
        return Decision(state=NodeState.UPGRADE_PAUSED, waits_for=waits, effects=(start,) if job is None else ())
    first: Effect = StartJob(node=view.name, job_type=job_type)
    if job is not None:
        first = ResumeJob(node=view.name, job_type=job_type)
    return Decision(state=begun, waits_for=f"node {view.name}: {job_type}", effects=(first,))


def begins(effect: Effect) -> bool:
    """Whether the node has begun with it, and is not to be stopped any more."""
    match effect:
        case StartJob(job_type=job_type, suspended=suspended):
            return job_type in FIRST_JOBS and not suspended
        case ResumeJob():
            return True
        case _:
            return False


def _is_held(view: NodeView) -> bool:
    begun = view.state is not None and view.state.group > NodeState.UPGRADE_PAUSED.group
    return view.paused and not begun
