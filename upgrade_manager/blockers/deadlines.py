"""The age at which each wait is overdue: from then on its finders read what holds the upgrade up.

The rows of finders name these functions. `pipeline/blocker_report.py` calls `earliest` in each reconcile, and the
finders only once a deadline has passed.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol

from upgrade_manager.api.names import label_value
from upgrade_manager.nodes.expected_times import USUAL_DRAIN, USUAL_REBOOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime

    from upgrade_manager.blockers.wait import DrainWait, EvacuationWait, ImageWait, JobWait, ReturnWait, Wait

#: Pods run and controllers act within that time, images pulled and volumes attached.
START = timedelta(minutes=1)
#: Rancher's planner acts within that time.
PLANNER = timedelta(seconds=USUAL_DRAIN)
#: Rancher may drain a node that runs the release's Kubernetes already within that time.
HOOK = timedelta(minutes=10)
#: Pods of a node end within that time, unless something keeps them.
DRAIN = timedelta(minutes=5)
#: KubeVirt migrates the VMs of a node within that time.
EVACUATION = timedelta(minutes=10)
#: A node shuts down, boots and starts its kubelet within that time.
REBOOT = timedelta(seconds=USUAL_REBOOT)
#: A node that becomes Ready sooner after the Job has not rebooted yet.
SHUTDOWN = timedelta(seconds=30)
#: Harvester reports the progress of an import, in whole percents, within that time.
PROGRESS = timedelta(minutes=10)
_AT_ONCE = timedelta(0)


class Row(Protocol):
    """The part of a finder's row that a deadline depends on."""

    @property
    def wait(self) -> type[Wait]:
        """The class of waits that it takes."""
        ...

    @property
    def overdue(self) -> Callable[[Any], timedelta | None]:
        """The age at which such a wait is overdue; None while it cannot be."""
        ...


def seconds_left(row: Row, wait: Wait, *, now: datetime) -> float | None:
    """Return the seconds until the wait is overdue for that row, 0 or less if it is; None if it does not apply."""
    limit = row.overdue(wait) if isinstance(wait, row.wait) else None
    return None if limit is None else (wait.since + limit - now).total_seconds()


def earliest(table: Iterable[Row], waits: Sequence[Wait], *, now: datetime) -> float | None:
    """Return the seconds until the first of the waits is overdue, 0 or less if one is; None if none will be."""
    left = (seconds_left(row, wait, now=now) for row in table for wait in waits)
    return min((seconds for seconds in left if seconds is not None), default=None)


def from_start(_: Wait) -> timedelta:
    """Return the deadline of a wait for something that starts."""
    return START


def at_once(_: Wait) -> timedelta:
    """Return the deadline of a wait whose cause is known to need a user, or to be another controller's."""
    return _AT_ONCE


def lost_hook(_: Wait) -> timedelta:
    """Return the deadline of a drain that Rancher may still begin."""
    return HOOK


def job_start(wait: JobWait) -> timedelta | None:
    """Return the deadline of a Job whose Pod does not run; None once it runs."""
    return None if wait.is_running else START


def job_progress(wait: JobWait) -> timedelta | None:
    """Return the deadline of a Job that runs, since its last step; None before."""
    return wait.stepped - wait.since + timedelta(seconds=wait.expected) if wait.is_running else None


def image_import(wait: ImageWait) -> timedelta:
    """Return the deadline of an import, since its last progress."""
    return wait.imported - wait.since + PROGRESS


def planner(_: Wait) -> timedelta:
    """Return the deadline of Rancher's planner."""
    return PLANNER


def rancher_drain(wait: DrainWait) -> timedelta:
    """Return the deadline of a drain by Rancher, since what held it up is over."""
    return wait.undisturbed - wait.since + PLANNER


def drain(wait: DrainWait) -> timedelta | None:
    """Return the time for a drain: none once Rancher reports an error; None for a node that is drained.

    On a drained node Longhorn may start Pods again, and keep them by a budget.
    """
    if wait.is_drained:
        return None
    return _AT_ONCE if wait.detail else DRAIN


def evacuation(wait: EvacuationWait) -> timedelta | None:
    """Return the time since the pre-drain Job began: it may wait for volumes before it lets KubeVirt move the VMs.

    None for a node whose name is too long for the labels of its VMs.
    """
    return wait.released - wait.since + EVACUATION if label_value(wait.node) == wait.node else None


def volumes(wait: EvacuationWait) -> timedelta | None:
    """Return the time for the volumes; None unless the Job waits for them."""
    return EVACUATION if wait.is_running and wait.is_at_gate else None


def reboot(wait: ReturnWait) -> timedelta:
    """Return the time for a reboot; none for a node that is Ready again: it has rebooted, and runs the old OS."""
    back = wait.ready_changed - wait.since
    return back if wait.is_ready and back >= SHUTDOWN else REBOOT


def lost_node(wait: ReturnWait) -> timedelta:
    """Return the time for a reboot; none for a node that is Ready: it runs another OS."""
    return _AT_ONCE if wait.is_ready else REBOOT
