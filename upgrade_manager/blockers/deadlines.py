"""The age at which each wait is overdue, from which on its finders read the objects that hold the upgrade up.

The rows of finders name these functions. `pipeline/blocker_report.py` calls `earliest` in each reconcile, and the
finders only once a deadline has passed.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol

from upgrade_manager.api.names import label_value
from upgrade_manager.nodes.expected_times import USUAL_DRAIN, USUAL_REBOOT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from upgrade_manager.blockers.known_wait import LostHookWait, MissingNodeWait
    from upgrade_manager.blockers.wait import DrainWait, EvacuationWait, ImageWait, JobWait, ReturnWait, Wait

#: The time in which Pods start, image pulls and volume attachments included, and in which controllers act.
START = timedelta(minutes=1)
#: The time in which the checks before the upgrade declare a target failed (preflight/poller.py), and a little more.
CHECK = timedelta(minutes=5)
#: The time in which Rancher's planner acts.
PLANNER = timedelta(seconds=USUAL_DRAIN)
#: The time in which Rancher may still drain a node that already runs the release's Kubernetes.
HOOK = timedelta(minutes=10)
#: The time in which the evicted Pods of a node terminate.
DRAIN = timedelta(minutes=5)
#: The time in which KubeVirt migrates the VMs of a node.
EVACUATION = timedelta(minutes=10)
#: The time in which a node shuts down, boots and starts its kubelet.
REBOOT = timedelta(seconds=USUAL_REBOOT)
#: The time in which Harvester reports further progress of an import, in whole percents, and a Job may end.
PROGRESS = timedelta(minutes=10)
#: The time in which Fleet deploys a changed value of Harvester's chart.
DEPLOYED = timedelta(minutes=2)
_AT_ONCE = timedelta(0)
#: The time in which the caches of Nodes, Secrets and the Cluster show the same state, and a kubelet reports again.
_SETTLED = timedelta(seconds=5)


class Row(Protocol):
    """The part of a finder's row that a deadline depends on."""

    @property
    def wait(self) -> type[Wait]:
        """The class of waits that the row handles."""
        ...

    @property
    def overdue(self) -> Callable[[Any], timedelta | None]:
        """The age at which a wait of this class is overdue; None while no deadline applies."""
        ...


def seconds_left(row: Row, wait: Wait, *, now: datetime) -> float | None:
    """Return the seconds until the wait is overdue for the row, at most 0 if overdue; None without a deadline."""
    limit = row.overdue(wait) if isinstance(wait, row.wait) else None
    return None if limit is None else (wait.since + limit - now).total_seconds()


def earliest(table: Sequence[Row], waits: Sequence[Wait], *, now: datetime) -> float | None:
    """Return the seconds until the first wait is overdue, at most 0 if a wait is overdue; None without a deadline."""
    # A thousand nodes have waits of a few classes, of which each is in a few rows.
    rows = {kind: [row for row in table if issubclass(kind, row.wait)] for kind in set(map(type, waits))}
    left = (seconds_left(row, wait, now=now) for wait in waits for row in rows[type(wait)])
    return min((seconds for seconds in left if seconds is not None), default=None)


def from_start(_: Wait) -> timedelta:
    """Return the deadline of a wait for something that starts."""
    return START


def deployed(_: Wait) -> timedelta:
    """Return the deadline of a changed chart."""
    return DEPLOYED


def at_once(_: Wait) -> timedelta:
    """Return the deadline of a wait whose known cause requires an action by a user or by another controller."""
    return _AT_ONCE


def missing_node(wait: MissingNodeWait) -> timedelta:
    """Return the deadline of a node that cannot be observed; the cache has time to show it."""
    return START if wait.is_passing else _AT_ONCE


def check(_: Wait) -> timedelta:
    """Return the deadline of a check before the upgrade, which fails the plan earlier if few nodes fail."""
    return CHECK


def settled(_: Wait) -> timedelta:
    """Return the deadline of a closed row of the gate, which objects of several caches decide."""
    return _SETTLED


def lost_hook(wait: LostHookWait) -> timedelta:
    """Return the deadline of a drain that Rancher may still begin, which is short if Rancher does not begin it."""
    return _SETTLED if wait.is_certain else HOOK


def job_start(wait: JobWait) -> timedelta | None:
    """Return the deadline of a Job whose Pod does not run; None once it runs."""
    return None if wait.is_running else START


def job_progress(wait: JobWait) -> timedelta | None:
    """Return the deadline of a running Job, counted from its last step; None before the Job runs."""
    return wait.stepped - wait.since + timedelta(seconds=wait.expected) if wait.is_running else None


def job_end(wait: JobWait) -> timedelta | None:
    """Return the deadline of the end of a running Job, after which its Pod may have succeeded; None before it runs.

    Until the Job controller has seen the success, no watched object shows it.
    """
    if not wait.is_running:
        return None
    return wait.succeeded - wait.since + START if wait.succeeded else wait.stepped - wait.since + PROGRESS


def needed_controller(wait: JobWait) -> timedelta | None:
    """Return the deadline of a Job that needs a controller, counted from its last step; None for another Job."""
    return wait.stepped - wait.since + PLANNER if wait.is_running and wait.controllers else None


def image_import(wait: ImageWait) -> timedelta:
    """Return the deadline of an import, counted from its last progress."""
    return wait.imported - wait.since + PROGRESS


def planner(_: Wait) -> timedelta:
    """Return the deadline of Rancher's planner."""
    return PLANNER


def rancher_drain(wait: DrainWait) -> timedelta:
    """Return the deadline of a drain by Rancher, counted from the end of the last known obstacle."""
    return wait.undisturbed - wait.since + PLANNER


def drain(wait: DrainWait) -> timedelta | None:
    """Return the deadline of a drain, which is immediate once Rancher reports an error; None for a drained node.

    Longhorn may start Pods on a drained node again, and protect these Pods by a PodDisruptionBudget.
    """
    if wait.is_drained:
        return None
    return _AT_ONCE if wait.detail else DRAIN


def evacuation(wait: EvacuationWait) -> timedelta | None:
    """Return the deadline of an evacuation, counted from the time at which the pre-drain Job let KubeVirt move the VMs.

    The Job may wait for volumes before. No deadline applies to a node whose name is too long for the labels of its VMs.
    """
    return wait.released - wait.since + EVACUATION if label_value(wait.node) == wait.node else None


def volumes(wait: EvacuationWait) -> timedelta | None:
    """Return the deadline of the wait for volumes; None unless the pre-drain Job waits for volumes."""
    return EVACUATION if wait.is_running and wait.is_at_gate else None


def leftover_budgets(wait: EvacuationWait) -> timedelta | None:
    """Return the deadline of the wait for leftover budgets, counted from the Job's step; None before that step."""
    return wait.at_budgets - wait.since + EVACUATION if wait.is_running and wait.at_budgets else None


def reboot(wait: ReturnWait) -> timedelta:
    """Return the deadline of a reboot; a node that is Ready again on the old OS is overdue at once."""
    return wait.ready_changed - wait.since if wait.has_rebooted else REBOOT


def lost_node(wait: ReturnWait) -> timedelta:
    """Return the deadline of the return of a lost node; a Ready node is overdue at once, because it runs another OS."""
    return _AT_ONCE if wait.is_ready else REBOOT
