"""The attempts of a plan: view.py and timeline.py read them, tables.py shows those that have failed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from upgrade_manager.api.attempts import is_requested, requested_attempt
from upgrade_manager.api.conditions import AVAILABLE, CLEANING_UP, CONCURRENT_UPGRADE_BLOCKED, PAUSED, WAITING
from upgrade_manager.api.text import one_line
from upgrade_manager.api.timestamps import parse_time
from upgrade_manager.display.model import AttemptRow
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from upgrade_manager.display.model import View
    from upgrade_manager.kube.objects import Object


#: The reasons of the conditions that say for what an attempt waits.
_WAITS = {PAUSED: {PAUSED}, AVAILABLE: {WAITING, CLEANING_UP, CONCURRENT_UPGRADE_BLOCKED}}


def attempt_rows(status: Mapping[str, Any], *, cause_limit: int) -> tuple[AttemptRow, ...]:
    """Return the recorded attempts, oldest first; the first one is recorded when it fails."""
    entries = objects.items(status, "attempts")
    return tuple(_row(entry, cause_limit) for entry in entries if isinstance(entry, dict))


def _row(entry: Mapping[str, Any], cause_limit: int) -> AttemptRow:
    phase, node, cause = (one_line(objects.text(entry, key))[:cause_limit] for key in ("phase", "node", "cause"))
    return AttemptRow(
        number=objects.number(entry, "attempt") or 1,
        started=parse_time(entry.get("begin")),
        ended=parse_time(entry.get("end")),
        phase=phase,
        node=node,
        cause=cause,
    )


def awaits_attempt(plan: Object) -> bool:
    """Return True for a failed plan whose next attempt is requested, and that the manager has not begun."""
    valid = {"spec": objects.mapping(plan, "spec"), "status": objects.mapping(plan, "status")}
    return is_requested(valid)


def attempt_wait(plan: Object) -> str:
    """Return the wait of such a plan, which the manager writes once it has seen the request."""
    for type_, reasons in _WAITS.items():
        found = objects.condition(plan, type_)
        if objects.text(found, "reason") in reasons:
            return objects.text(found, "message")
    return f"Attempt {requested_attempt(objects.mapping(plan, 'spec'))} is requested; the manager has not begun it"


def attempt_text(row: AttemptRow) -> str:
    """Return where an attempt failed, and why; empty for one that has not failed."""
    return f"Failed in {row.place}: {row.cause}" if row.phase else row.cause


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The time of an attempt."""

    number: int
    begun: datetime
    #: The failure of the attempt; of the last one the end of the plan, or the present.
    ended: datetime
    has_failed: bool
    #: The node that failed; empty without one.
    node: str


def windows(view: View) -> Iterator[Window]:
    """Yield the times of the attempts of a plan that has begun."""
    if view.started is None:
        return
    last = view.ended or view.now
    rows = view.attempts or (AttemptRow(number=1, started=view.started, ended=None, phase="", node="", cause=""),)
    for row in rows:
        begun = row.started or view.started
        has_failed = row.ended is not None
        yield Window(
            number=row.number, begun=begun, ended=max(begun, row.ended or last), has_failed=has_failed, node=row.node
        )
