"""The leader of the managers, as their Lease shows it: without one an upgrade stands still.

cli/lease_watch.py reads the Lease; view.py asks for its row, which tables.py, lines.py and document.py show.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import HARVESTER_SYSTEM, MANAGER
from upgrade_manager.runtime.lease import is_led, last_renewal, pod_of, renewed_at

if TYPE_CHECKING:
    from datetime import datetime

    from upgrade_manager.kube.objects import Object

#: The checks of the installation, and conditions and events of the Deployment; each in fewer than 80 characters.
COMMANDS = ("upgrade-manager check", f"kubectl -n {HARVESTER_SYSTEM} describe deployment {MANAGER}")


class LeaderState(StrEnum):
    """The state of the leadership."""

    LEADING = "Leading"
    #: The lease is released, or has expired.
    NONE = "None"
    #: The Lease does not exist, as without leader election, or cannot be read.
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseReading:
    """One response to a request for the Lease."""

    #: Empty if it was not read, or does not exist.
    lease: Object
    #: The reason for which it cannot be read, or that it does not exist; empty otherwise.
    error: str
    #: The API server's time; None if it was not read.
    at: datetime | None


#: For displays without a cluster.
NOT_READ = LeaseReading(lease={}, error="", at=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderRow:
    """The leader, and what to do without one."""

    state: LeaderState
    #: The Pod, or the machine, that holds or held the Lease; empty if unknown.
    holder: str
    renewed: datetime | None
    #: Whole sentences; empty while a replica leads, and for a plan that needs none.
    message: str
    #: To find the reason, each for a separate line.
    commands: tuple[str, ...]

    @property
    def is_missing(self) -> bool:
        """True if the plan stands still without a leader."""
        return self.state is LeaderState.NONE and bool(self.message)


def leader_row(reading: LeaseReading, *, is_needed: bool, now: datetime) -> LeaderRow:
    """Return the row; `is_needed` is False for a plan that has ended, about which a message would be a false alarm."""
    state, renewed = _state(reading), renewed_at(reading.lease)
    row = LeaderRow(state=state, holder=pod_of(reading.lease), renewed=renewed, message="", commands=())
    if not is_needed:
        return row
    if state is LeaderState.UNKNOWN and reading.error:
        return replace(row, message=f"It is unknown whether a manager leads: {reading.error}.")
    if state is LeaderState.NONE:
        last = last_renewal(reading.lease, now=now)
        return replace(row, message=f"No manager leads, so the upgrade stands still: {last}.", commands=COMMANDS)
    return row


def _state(reading: LeaseReading) -> LeaderState:
    if not reading.lease or reading.at is None:
        return LeaderState.UNKNOWN
    return LeaderState.LEADING if is_led(reading.lease, at=reading.at) else LeaderState.NONE
