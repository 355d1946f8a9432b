"""Runs the finders of overdue waits."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import structlog

from upgrade_manager.api.blockers import Blocker, BlockerReason
from upgrade_manager.api.remedy import Remedy
from upgrade_manager.api.text import namespaced_name
from upgrade_manager.blockers import deadlines
from upgrade_manager.blockers.object_view import NotSynced, Unreadable
from upgrade_manager.blockers.remedy import permissions
from upgrade_manager.blockers.wait import Wait
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import PROVISIONING_CLUSTERS, SUC_PLANS, VIRTUAL_MACHINE_IMAGES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime, timedelta

    from upgrade_manager.blockers.object_view import View

_log = structlog.get_logger(__name__)

W = TypeVar("W", bound=Wait)
#: Seconds until an overdue wait without a blocker is checked again: an object may become late without a change.
RECHECK = 15.0
#: Seconds until objects that are being listed are read again.
SYNC_RETRY = 0.5
#: Seconds until objects that could not be listed are read again.
READ_RETRY = 5.0
#: Characters of a wait's detail in a message. The error follows the detail and ends with the missing permission.
_MAX_DETAIL = 44
#: Resource names for kubectl, by kind, of kinds that other API groups have as well, or that have no short name.
_QUALIFIED = {one.kind: one.name for one in (PROVISIONING_CLUSTERS, SUC_PLANS, VIRTUAL_MACHINE_IMAGES)}


class NotLate(Exception):  # a state, as in object_view, not an error
    """The objects that a finder sees are not late yet; `at` is the time from which they are late."""

    def __init__(self, at: datetime) -> None:
        super().__init__(at)
        self.at = at


class Row(deadlines.Row, Protocol):
    """One row of the table, for any class of waits."""

    @property
    def reasons(self) -> tuple[BlockerReason, ...]:
        """The reasons that the finder may report; the first reason also stands for objects that cannot be read."""
        ...

    def look(self, view: View, wait: Wait) -> Iterable[Blocker]:
        """Yield the blockers of the wait."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Finder(Generic[W]):
    """One row of the table: a class of waits, its deadline, and the function that finds the blockers."""

    wait: type[W]
    #: The reasons that the finder may report; the first reason also stands for objects that cannot be read.
    reasons: tuple[BlockerReason, ...]
    #: The age at which the wait is overdue; None while no deadline applies.
    overdue: Callable[[W], timedelta | None]
    find: Callable[[View, W], Iterable[Blocker]]

    def look(self, view: View, wait: Wait) -> Iterable[Blocker]:
        """See Row."""
        return self.find(view, wait) if isinstance(wait, self.wait) else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The result of a run."""

    blockers: Sequence[Blocker]
    #: Seconds until the next run of the finders; None if no further wait becomes overdue.
    after: float | None


def find_blockers(table: Iterable[Row], view: View, waits: Sequence[Wait], known: Iterable[Blocker]) -> Findings:
    """Run the finders of overdue waits; after a restart, report the `known` blockers until their objects are listed."""
    found: list[Blocker] = []
    pauses: list[float] = []
    for row, wait in product(table, waits):
        left = deadlines.seconds_left(row, wait, now=view.now)
        if left is None:
            continue
        if left > 0:
            pauses.append(left)
            continue
        known_before = len(found)
        try:
            # The list keeps the blockers that a finder yields before an error.
            found.extend(_look(row, view, wait))
            pauses += [RECHECK] if len(found) == known_before else []
        except NotLate as error:
            pauses.append(max((error.at - view.now).total_seconds(), SYNC_RETRY))
        except NotSynced:
            pauses.append(SYNC_RETRY)
            found += [one for one in known if one.reason in row.reasons and (one.others or one.node == wait.node)]
        except Unreadable as error:
            pauses.append(READ_RETRY)
            found.append(_unknown(row, wait, error))
        except Exception:  # noqa: BLE001  # finders read other clients' objects, and must never stop the upgrade
            _log.exception("finder failed", wait=wait.kind.name, object=wait.name)
    return Findings(blockers=found, after=min(pauses, default=None))


def _look(row: Row, view: View, wait: Wait) -> Iterable[Blocker]:
    if not view.is_current:
        # After a lost connection the wait may be over, because other controllers have continued.
        raise NotSynced
    return row.look(view, wait)


def _unknown(row: Row, wait: Wait, error: Unreadable) -> Blocker:
    kind = wait.kind.object_kind
    named = namespaced_name(wait.namespace, wait.name)
    place = f"-n {wait.namespace} " if wait.namespace else ""
    words = objects.excerpt(wait.detail)[:_MAX_DETAIL]
    known = f" ({words})" if words else ""
    return Blocker(
        reason=row.reasons[0],
        kind=kind,
        namespace=wait.namespace,
        name=wait.name,
        node=wait.node,
        message=f"{kind} {named}: the upgrade waits for it too long{known}, and the manager cannot read the reason: "
        f"{error}",
        remedies=(
            permissions(wait.namespace),
            Remedy(
                "Show the object",
                command=f"kubectl describe {_QUALIFIED.get(kind, kind.lower())} {place}{wait.name}",
            ),
        ),
        since=wait.since,
    )
