"""The progress of plans and the time of their last progress, for scrapes; a status alone does not show the time.

metrics.py exports the progress; context.py and reconciler.py record it.

Times come from observed objects where these have times, so that a restart counts neither as progress nor as a stall.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from upgrade_manager.api.attempts import attempt_began
from upgrade_manager.api.conditions import STALLED
from upgrade_manager.api.node_states import NodeState, recorded_states
from upgrade_manager.api.phases import phase_of
from upgrade_manager.api.progress import progress_ratio
from upgrade_manager.api.timestamps import parse_time, seconds_between
from upgrade_manager.kube import objects
from upgrade_manager.nodes.sequencing import IN_PROGRESS

if TYPE_CHECKING:
    from collections.abc import Container, Iterable
    from datetime import datetime

    from upgrade_manager.blockers.wait import Wait
    from upgrade_manager.kube.objects import Object


#: Without scrapes, a reconcile reads the waits when there are more.
MAX_UNREAD = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Movement:
    """The observations of a plan's progress in reconciles."""

    #: The time at which a phase, a node or an awaited object moved last; None if nothing was observed.
    moved: datetime | None = None
    #: The longest usual time without progress of the plan's waits.
    usual: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanProgress:
    """The progress of one plan."""

    #: 0 to 1.
    ratio: float
    #: The time of the last movement; None before the plan is accepted.
    moved: datetime | None
    #: The longest usual time without progress, as in Movement.
    usual: float = 0.0

    @classmethod
    def of(cls, plan: Object, movement: Movement, *, least: float) -> PlanProgress:
        """Read the plan; nodes that join must not reduce the ratio below the `least` that was exported."""
        status = objects.status(plan)
        entries = status.get("phaseTransitionTimestamps") or []
        began = parse_time(attempt_began(status))
        times = [movement.moved, began, *(parse_time(entry.get("phaseTransitionTimestamp")) for entry in entries)]
        moved = max((time for time in times if time is not None), default=None)
        return cls(ratio=max(least, progress_ratio(status)), moved=moved, usual=movement.usual)


@dataclass(slots=True)
class _Observed:
    """The observations of a plan since it was read last."""

    #: The last movement of a phase, a node, or a wait that was read.
    moved: datetime | None = None
    #: Waits whose last progress is not read yet, at most MAX_UNREAD. A scrape reads them, not each reconcile.
    unread: list[Wait] = field(default_factory=list)
    current: tuple[Wait, ...] = ()

    def read(self) -> Movement:
        """Return the last movement, including the movement of the waits."""
        times = [wait.progressed for wait in self.unread] + ([self.moved] if self.moved else [])
        self.moved, self.unread = max(times, default=None), []
        return Movement(moved=self.moved, usual=max((wait.usual for wait in self.current), default=0.0))


class ProgressTracker:
    """Remembers by uid what the reconciles of plans observe; used on the event loop only."""

    def __init__(self) -> None:
        self._plans: dict[str, _Observed] = {}

    def moved(self, plan: Object, now: datetime) -> None:
        """Record that a phase or a node of the plan has moved."""
        known = self._plans.setdefault(objects.uid(plan), _Observed())
        known.moved = max(known.moved or now, now)

    def waiting(self, plan: Object, waits: Iterable[Wait]) -> None:
        """Record the waits of the plan."""
        known = self._plans.setdefault(objects.uid(plan), _Observed())
        known.current = tuple(waits)
        known.unread += known.current
        if len(known.unread) > MAX_UNREAD:
            known.read()

    def of(self, plan: Object) -> Movement:
        """Return what is known about the plan."""
        known = self._plans.get(objects.uid(plan))
        return Movement() if known is None else known.read()

    def keep(self, uids: Container[str]) -> None:
        """Forget all other plans."""
        self._plans = {uid: known for uid, known in self._plans.items() if uid in uids}


def is_stalled(plan: Object, progress: PlanProgress, now: datetime) -> bool:
    """Return True if something holds the plan up, or nothing moved for longer than the phase usually takes for a step.

    A plan that only waits for a user who paused it, or its nodes, is not stalled.
    """
    if objects.is_condition_true(plan, STALLED):
        return True
    phase = phase_of(objects.status(plan).get("currentPhase") or "")
    if phase is None or progress.moved is None or _is_paused(plan):
        return False
    return seconds_between(progress.moved, now) > max(phase.spec.usual, progress.usual)


def _is_paused(plan: Object) -> bool:
    if objects.status(plan).get("holds"):
        return True
    states = set(recorded_states(objects.status(plan)))
    return NodeState.UPGRADE_PAUSED in states and states.isdisjoint(IN_PROGRESS)
