"""The events of an upgrade: each phase is announced when it is recorded, once, whatever crashes when.

An event's name is made of the plan's uid and of what it says, so that saying it again is refused by the API server and
not shown twice. A manager that starts says again what was recorded shortly before, for its predecessor may have died
between the record and the event.
"""

from __future__ import annotations

from datetime import timedelta
from hashlib import sha256
from typing import TYPE_CHECKING

from upgrade_manager.api.conditions import AVAILABLE, CONCURRENT_UPGRADE_BLOCKED, RECONCILE_ERROR
from upgrade_manager.api.phases import FAILED, SUCCEEDED, TERMINAL, phase_of
from upgrade_manager.api.timestamps import parse_time
from upgrade_manager.kube import objects
from upgrade_manager.pipeline.status import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from upgrade_manager.kube.events import EventRecorder
    from upgrade_manager.kube.objects import Object

NORMAL = "Normal"
WARNING = "Warning"
#: What was recorded longer ago has been announced, or nobody is waiting for it any more: the API server itself forgets
#: events after an hour.
RECENT = timedelta(minutes=50)
#: Characters of the plan's name in an event's name, which may have 253.
_NAME_LENGTH = 200
_TIME = "phaseTransitionTimestamp"


class PlanEvents:
    """Says what happens to plans; never blocks, never fails."""

    def __init__(self, recorder: EventRecorder, *, now: Callable[[], datetime]) -> None:
        self._recorder = recorder
        self._now = now
        #: Names of the warnings that were given.
        self._said: set[str] = set()

    def phases(self, plan: Object, values: Iterable[str]) -> None:
        """Announce phase values that have just been recorded, in their order."""
        for value in values:
            if phase_of(value) is None and value not in TERMINAL:
                # A newer version wrote it, and has announced it in its own words.
                continue
            reason, message = self._words(plan, value)
            self._recorder.record(
                plan,
                type_=WARNING if value == FAILED else NORMAL,
                reason=reason,
                message=message,
                name=_unique_name(plan, value),
            )

    def repeat_recent(self, plan: Object) -> None:
        """Announce again what was recorded shortly before this process began."""
        since = self._now() - RECENT
        entries = objects.status(plan).get("phaseTransitionTimestamps") or []
        recent = [e.get("phase") or "" for e in entries if (parse_time(e.get(_TIME)) or since) > since]
        self.phases(plan, recent)

    def error(self, plan: Object, message: str) -> None:
        """A step raised an error that is retried; equal ones are counted, not repeated."""
        self._recorder.record(plan, type_=WARNING, reason=RECONCILE_ERROR, message=one_line(message))

    def blocked(self, plan: Object) -> None:
        """Another plan holds the cluster; the words are those of the record."""
        message = (objects.condition(plan, AVAILABLE) or {}).get("message") or "another UpgradePlan is in progress"
        self._recorder.record(
            plan,
            type_=WARNING,
            reason=CONCURRENT_UPGRADE_BLOCKED,
            message=one_line(message),
            name=_unique_name(plan, "blocked"),
        )

    def warning(self, plan: Object, reason: str, message: str, *, about: str = "") -> None:
        """Something is not as it should be, and the upgrade goes on all the same; said once, or once about each."""
        name = _unique_name(plan, f"{reason}/{about}" if about else reason)
        self._said.add(name)
        self._recorder.record(plan, type_=WARNING, reason=reason, message=one_line(message), name=name)

    def has_warned(self, plan: Object, reason: str, *, about: str = "") -> bool:
        """Whether this process has said that already; an earlier one may have."""
        return _unique_name(plan, f"{reason}/{about}" if about else reason) in self._said

    @staticmethod
    def _words(plan: Object, value: str) -> tuple[str, str]:
        phase = phase_of(value)
        if value == SUCCEEDED:
            return "UpgradeSucceeded", "Upgrade completed successfully"
        if phase is None:
            cause = (objects.condition(plan, "Progressing") or {}).get("message", "")
            return "UpgradeFailed", one_line(f"Upgrade failed: {cause}")
        if value == phase.active:
            return "PhaseTransition", f"Entering phase {phase}"
        return "PhaseCompleted", f"Completed phase {phase}"


def _unique_name(plan: Object, what: str) -> str:
    digest = sha256(f"{objects.uid(plan)}/{what}".encode()).hexdigest()[:16]
    return f"{objects.name(plan)[:_NAME_LENGTH].rstrip('.-')}.{digest}"
