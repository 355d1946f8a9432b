"""The milestones of a node's upgrade, for events: each is reached once.

The milestones and their times are derived from the node's Jobs and its condition Ready, so that a restart of the
manager does not change them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import JobType
from upgrade_manager.api.node_states import NodeState
from upgrade_manager.api.timestamps import format_duration, parse_time, seconds_between
from upgrade_manager.facts.node_obstacles import paused

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from upgrade_manager.facts.job_state import JobState
    from upgrade_manager.nodes.model import Decision, NodeView


class MilestoneReason(StrEnum):
    """The reasons of the events, in the order in which a node reaches the milestones."""

    NODE_PAUSED = "NodePaused"
    NODE_RESUMED = "NodeResumed"
    NODE_DRAINING = "NodeDraining"
    NODE_UPGRADING = "NodeUpgrading"
    NODE_REBOOTING = "NodeRebooting"
    NODE_UPGRADED = "NodeUpgraded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Milestone:
    """A milestone that a node has reached."""

    reason: MilestoneReason
    message: str
    #: The time at which the node reached the milestone; None for an unknown time, or for the present.
    at: datetime | None


def reached(view: NodeView, decision: Decision, *, now: datetime) -> Iterator[Milestone]:
    """Yield the milestones that the node has reached, in order."""
    first, upgrade = _jobs(view)
    pre_drain = first if JobType.SINGLE_NODE_UPGRADE not in view.jobs else None
    if first is not None:
        yield from _pause(view, first, decision.state)
    elif view.state is NodeState.UPGRADE_PAUSED and decision.state not in {None, NodeState.UPGRADE_PAUSED}:
        # Its suspended Job was of an earlier request.
        yield _milestone(MilestoneReason.NODE_RESUMED, f"Node {view.name}: resumed", at=None)
    if pre_drain is not None and pre_drain.started:
        yield _milestone(MilestoneReason.NODE_DRAINING, f"Node {view.name}: draining begins", at=_begin(pre_drain))
    if upgrade is not None and upgrade.started:
        yield _upgrading(view.name, pre_drain, upgrade)
    times = _Times.of(view, first, upgrade)
    is_upgraded = decision.state is not None and decision.state.upgraded
    if decision.state is NodeState.WAITING_REBOOT or (is_upgraded and times.returned):
        yield _rebooting(view, times)
    if is_upgraded and not decision.holds:
        yield _upgraded(view, times, now)


def upgrade_seconds(view: NodeView, *, now: datetime) -> float | None:
    """Return the duration, in seconds, of the upgrade of a node that is done; None if the duration is unknown."""
    first, upgrade = _jobs(view)
    times = _Times.of(view, first, upgrade)
    end = times.end(view, now)
    return seconds_between(times.begun, end) if times.begun and end else None


def _jobs(view: NodeView) -> tuple[JobState | None, JobState | None]:
    """Return the Job with which the node's upgrade begins, and the one that upgrades its operating system.

    When Rancher drains an upgraded node again, these are Jobs of an earlier request.
    """
    drains = (jobs.get(JobType.PRE_DRAIN) for jobs in (view.jobs, view.old_jobs))
    drain = next((job for job in drains if job is not None and not job.repeated), None)
    upgrade = view.old_jobs.get(JobType.POST_DRAIN) if view.is_upgraded else None
    return view.jobs.get(JobType.SINGLE_NODE_UPGRADE) or drain, view.os_upgrade or upgrade


@dataclass(frozen=True, slots=True, kw_only=True)
class _Times:
    """The times of the last steps of a node's upgrade; None if one is unknown or did not happen."""

    begun: datetime | None
    #: The begin and the end of the Job that upgrades the operating system.
    upgrading: datetime | None
    completed: datetime | None
    #: The time at which the node became Ready again; its Job may be counted as complete only after that.
    returned: datetime | None

    @classmethod
    def of(cls, view: NodeView, first: JobState | None, upgrade: JobState | None) -> _Times:
        upgrading, ready = _begin(upgrade), parse_time(view.ready_since)
        completed = parse_time(upgrade.completed) if upgrade else None
        returned = ready if upgrading and ready and view.ready and ready >= upgrading else None
        return cls(begun=_begin(first), upgrading=upgrading, completed=completed, returned=returned)

    def back(self, view: NodeView, now: datetime) -> datetime | None:
        """Return the time at which the node was back from its reboot; None without a reboot."""
        if self.returned is None and view.state is NodeState.WAITING_REBOOT:
            # The kubelet was back before the node counted as NotReady.
            return now
        return self.returned

    def end(self, view: NodeView, now: datetime) -> datetime | None:
        """Return the time at which the node's upgrade ended."""
        return self.back(view, now) or self.completed


def _begin(job: JobState | None) -> datetime | None:
    return parse_time(job.started) if job is not None else None


def _milestone(reason: MilestoneReason, message: str, *, at: datetime | None) -> Milestone:
    return Milestone(reason=reason, message=message, at=at)


def _pause(view: NodeView, first: JobState, state: NodeState | None) -> Iterator[Milestone]:
    node, resumed, created = view.name, parse_time(first.resumed), parse_time(first.created)
    if resumed or (first.suspended and NodeState.UPGRADE_PAUSED in {view.state, state}):
        message = f"Node {node}: paused; {paused().ways_out[0]}"
        yield _milestone(MilestoneReason.NODE_PAUSED, message, at=created)
    if resumed:
        message = f"Node {node}: resumed{_duration('after', created, resumed)}"
        yield _milestone(MilestoneReason.NODE_RESUMED, message, at=resumed)


def _upgrading(node: str, pre_drain: JobState | None, upgrade: JobState) -> Milestone:
    begun, message = _begin(upgrade), f"Node {node}: the upgrade of its operating system begins"
    if pre_drain is not None:
        message += f"; it was drained, and its Kubernetes upgraded{_duration('in', _begin(pre_drain), begun)}"
    return _milestone(MilestoneReason.NODE_UPGRADING, message, at=begun)


def _rebooting(view: NodeView, times: _Times) -> Milestone:
    duration = _duration("in", times.upgrading, times.completed)
    message = f"Node {view.name}: reboots; its operating system was upgraded{duration}"
    at = times.completed if _is_recorded(view, NodeState.WAITING_REBOOT) else None
    return _milestone(MilestoneReason.NODE_REBOOTING, message, at=at)


def _upgraded(view: NodeView, times: _Times, now: datetime) -> Milestone:
    is_recorded = _is_recorded(view, NodeState.POST_DRAINED)
    returned, end = times.back(view, now), times.end(view, now)
    message = f"Node {view.name}: upgraded{_duration('in', times.begun, end)}"
    if returned is not None and times.completed is not None:
        message += f"; its reboot took {format_duration(seconds_between(times.completed, returned))}"
    at = end if is_recorded else None
    return _milestone(MilestoneReason.NODE_UPGRADED, message, at=at)


def _is_recorded(view: NodeView, state: NodeState) -> bool:
    """Return True if an earlier reconcile recorded that state, so that the milestone may have been reported, too."""
    return view.state is not None and view.state.group >= state.group


def _duration(word: str, begun: datetime | None, ended: datetime | None) -> str:
    return f" {word} {format_duration(seconds_between(begun, ended))}" if begun and ended else ""
