"""The pauses of the node upgrade: which node holds before its next step, and whether anything still runs.

pipeline/node_upgrade/holds.py passes the closed rows to the gate, and report.py says where the upgrade holds.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import filterfalse
from typing import TYPE_CHECKING

from upgrade_manager.api.holds import FIRST_STEPS, HoldPoint, continue_command, entry_of
from upgrade_manager.api.keys import JobType
from upgrade_manager.api.node_states import NodeState
from upgrade_manager.api.remedy import Remedy
from upgrade_manager.api.text import name_list
from upgrade_manager.nodes.gate import Closed, GateRow
from upgrade_manager.nodes.model import RemoveJob, RestoreVMs, ResumeJob, StartJob
from upgrade_manager.nodes.sequencing import is_in_progress, is_started, starts_upgrade
from upgrade_manager.resources.jobs import REBOOTING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from upgrade_manager.nodes.model import Decision, Decisions, Effect, NodeView


def plan_pause(plan: str, *, after: int | None) -> Closed:
    """Return the row that holds each node of a paused plan; `after` is the number of nodes after which it pauses."""
    why = "it is paused" if after is None else f"it pauses after {after} nodes"
    return _row(plan, why, command=continue_command(plan))


def held_point(
    view: NodeView, decision: Decision, points: Collection[str], *, continued: Collection[str], is_own: bool
) -> str:
    """Return the point at which the node holds now; empty if it does not hold.

    The Pod of our toolkit holds itself before the reboot; Harvester's reboots at the end of its Job, which does not
    begin before.
    """
    found = (point for point in HoldPoint if point in points and entry_of(view.name, point) not in continued)
    return next((point for point in found if _is_at(view, decision, point, is_own=is_own)), "")


def _is_at(view: NodeView, decision: Decision, point: HoldPoint, *, is_own: bool) -> bool:
    if point is HoldPoint.DRAIN:
        is_first = not is_started(view) or view.state in FIRST_STEPS
        return is_first and any(map(starts_upgrade, decision.effects))
    if is_own:
        return _holds_itself(view)
    return any(map(_reboots, decision.effects))


def _holds_itself(view: NodeView) -> bool:
    """Return True while the Pod of the node's Job holds before the reboot."""
    job = view.os_upgrade
    return job is not None and not job.suspended and job.holds


def _reboots(effect: Effect) -> bool:
    return isinstance(effect, StartJob | ResumeJob) and effect.job_type in REBOOTING


def _begins(effect: Effect) -> bool:
    """Return True for an effect that lets a Job run; the decisions of a node that holds have none."""
    return isinstance(effect, ResumeJob | RestoreVMs) or (isinstance(effect, StartJob) and not effect.suspended)


def node_pause(node: str, point: str, *, plan: str) -> Closed:
    """Return the row of a node that holds at the point."""
    why = f"pauseBefore holds {node} before its {point.lower()}"
    return _row(plan, why, command=continue_command(plan, node))


def _row(plan: str, why: str, *, command: str) -> Closed:
    return Closed(row=GateRow.PAUSE, name=plan, why=why, ways_out=(Remedy("Continue it", command=command),))


def without_reboot(view: NodeView, decision: Decision, row: Closed) -> Decision:
    """Return the decision without the Job that reboots the node, which no row of the gate may hold back."""
    left = tuple(filterfalse(_reboots, decision.effects))
    if left == decision.effects:
        return decision
    # A node that was in pauseNodes is paused by its user no more.
    state = view.state if is_started(view) else None
    return replace(decision, state=state, effects=left, progress=f"{view.name}: waiting for {row}", holds=True)


def with_new_job(view: NodeView, decision: Decision) -> Decision:
    """Return the decision that removes a suspended Job that would not hold before the reboot, instead of resuming it.

    It is older than the plan's hold, and the environment of a Job does not change. The next reconcile creates a Job
    that holds.
    """
    resumed = next((one for one in decision.effects if isinstance(one, ResumeJob) and _reboots(one)), None)
    if resumed is None or is_started(view) or view.jobs[resumed.job_type].may_hold:
        return decision
    progress = f"{view.name}: replacing its suspended {resumed.job_type} Job by one that holds before the reboot"
    remove = RemoveJob(node=view.name, job_type=resumed.job_type)
    return replace(decision, state=None, effects=(remove,), progress=progress, holds=True)


def where_held(
    decisions: Decisions, *, held: Mapping[str, str], closed: Mapping[str, Closed], single: bool, is_paused: bool
) -> str:
    """Return where a paused upgrade holds, after "holds"; empty while something of it runs, and after the last node.

    `held` are the nodes that hold by pauseBefore, each with its point. A plan that `is_paused` holds also before nodes
    that Rancher has not reached.
    """
    paused = {name for name, row in closed.items() if row.row is GateRow.PAUSE} | held.keys()
    if any(_runs(view, decision, is_held=view.name in paused) for view, decision in decisions.active):
        return ""
    left = [view.name for view, _ in decisions.unfinished]
    named = {point: [name for name in left if held.get(name) == point] for point in HoldPoint}
    if found := [f"before the {point.lower()} of {name_list(names)}" for point, names in named.items() if names]:
        return " and ".join(found)
    drained = {view.name for view, _ in decisions.active if view.state is NodeState.POST_DRAINING}
    if names := sorted(paused & set(left) & drained):
        return f"before the {JobType.POST_DRAIN} Job of {name_list(names)}"
    step = "upgrade" if single else "drain"
    if names := sorted(paused & set(left)):
        return f"before the {step} of {name_list(names)}"
    return f"before the {step} of the next node" if decisions.left and is_paused else ""


def _runs(view: NodeView, decision: Decision, *, is_held: bool) -> bool:
    """Return True while a Job of the node runs or begins, Rancher works on it, or it reboots."""
    if _holds_itself(view):
        return False
    if any(job.may_run for job in view.jobs.values()) or any(map(_begins, decision.effects)):
        return True
    return not is_held and not decision.is_done and (is_in_progress(view, decision) or view.under_way)
