"""The view of an upgrade, as data for every form in which it is shown."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from upgrade_manager.api.remedy import Remedy
    from upgrade_manager.display.leader import LeaderRow


class PlanState(StrEnum):
    """The state of a plan."""

    #: The manager has not accepted it, or its next attempt, yet.
    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"

    @property
    def is_end(self) -> bool:
        """True if the plan does not change its state any more."""
        return self in {PlanState.SUCCEEDED, PlanState.FAILED}


class PhaseState(StrEnum):
    """A phase's state."""

    PENDING = "pending"
    ACTIVE = "active"
    DONE = "done"
    FAILED = "failed"
    #: The manager had no such phase when the plan passed it.
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseRow:
    """One phase."""

    name: str
    state: PhaseState
    #: None before the start.
    started: datetime | None
    #: None before the end; a phase that failed ended with the plan.
    ended: datetime | None
    #: The duration so far, without the time between attempts; None before the start.
    seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRow:
    """One attempt."""

    number: int
    started: datetime | None
    #: The time of its failure; None while it runs, and after a success.
    ended: datetime | None
    #: The phase in which it failed, and its node; empty if it has not failed, or not on one node.
    phase: str
    node: str
    cause: str

    @property
    def place(self) -> str:
        """Phase and node of the failure."""
        return " of ".join(filter(None, (self.phase, self.node)))


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRow:
    """One node."""

    name: str
    state: str
    #: The time at which it reached the state; None where no event shows it.
    since: datetime | None
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockerRow:
    """Something that the upgrade waits for longer than it should."""

    kind: str
    namespace: str
    name: str
    node: str
    reason: str
    message: str
    #: All remedies in one line.
    remedy: str
    remedies: tuple[Remedy, ...]
    since: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRow:
    """One event about the plan."""

    #: The time of its first occurrence.
    first: datetime | None
    #: The time of its last occurrence.
    time: datetime | None
    type: str
    reason: str
    message: str
    count: int
    #: The time at which the blocker that it reports has cleared; None while it lasts, and for other events.
    cleared: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """All that is shown."""

    plan: str
    state: PlanState
    #: `status.display.state`, such as `Stalled: DrainFailing`.
    status: str
    #: Value of currentPhase.
    phase: str
    previous_version: str
    target_version: str
    #: The toolkit image and its kind; empty before it is recorded.
    toolkit_image: str
    #: The treatment of VMs whose migration fails; empty before the toolkit image is recorded.
    on_migration_failure: str
    #: The checks of the ISO against checksums; empty before they are recorded.
    checksums: str
    #: The user who created the plan; empty if that is not recorded.
    created_by: str
    #: The time of the plan's acceptance.
    started: datetime | None
    #: None while it runs.
    ended: datetime | None
    #: Seconds from the start to the end, or until now, without those between attempts.
    elapsed_seconds: float
    #: The number of the attempt that runs, or has run last.
    attempt: int
    #: Those that have failed, oldest first, and the present one if it is not the first.
    attempts: tuple[AttemptRow, ...]
    #: None where neither this upgrade nor an earlier one shows it.
    estimated_completion: datetime | None
    #: 0 to 1.
    progress: float
    phases: tuple[PhaseRow, ...]
    #: In the order of their numbers.
    nodes: tuple[NodeRow, ...]
    #: The wait of the upgrade; empty between two phases and at the end.
    waiting: str
    #: An error that is retried; empty otherwise.
    last_error: str
    #: The cause of the plan's failure or block, or what a success has left to users; empty otherwise.
    cause: str
    #: The plan is being deleted.
    deleting: bool
    #: The plan has ended, and its objects are being removed.
    cleaning_up: bool
    #: The steps after the end; empty before, and if nothing is to be done.
    next_steps: tuple[Remedy, ...]
    blockers: tuple[BlockerRow, ...]
    #: The last ones, oldest first.
    warnings: tuple[EventRow, ...]
    #: The leader of the managers; the plan stands still without one.
    leader: LeaderRow
    #: All events, oldest first.
    events: tuple[EventRow, ...]
    #: The time of this state.
    now: datetime

    @property
    def attempt_began(self) -> datetime | None:
        """The time at which the present attempt began; None for the first one."""
        return next((row.started for row in self.attempts if row.number == self.attempt > 1), None)

    @property
    def is_stalled(self) -> bool:
        """True if something holds the upgrade up."""
        return self.status.partition(":")[0] == "Stalled"

    @property
    def remarks(self) -> list[str]:
        """The works beside the state, unless its word names them."""
        states = ((self.deleting, "deleting", "Deleting"), (self.cleaning_up, "cleaning up", "CleaningUp"))
        return [text for is_so, text, word in states if is_so and self.status != word]

    @property
    def route(self) -> str:
        """Such as `Harvester v1.7.1 → v1.8.0`."""
        return " ".join(filter(None, ("Harvester", self.previous_version, "→", self.target_version)))
