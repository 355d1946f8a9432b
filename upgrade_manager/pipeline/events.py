"""The events of an UpgradePlan: one for each phase reached, exactly once even after a crash.

An event's name is derived from the plan's uid and the phase, so the API server refuses duplicates. Names sort in the
order of the events, because kubectl sorts events of one second by name. After a start the manager records the events of
recent phases again, because the previous leader may have died before it sent them.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import structlog

from upgrade_manager.api.attempts import attempt_began, attempt_of
from upgrade_manager.api.blockers import BlockerReason
from upgrade_manager.api.conditions import AVAILABLE, CONCURRENT_UPGRADE_BLOCKED, RECONCILE_ERROR
from upgrade_manager.api.history import (
    BLOCKER_CLEARED,
    NORMAL,
    UPGRADE_CONTINUED,
    UPGRADE_PAUSED,
    WARNING,
    cleared_text,
)
from upgrade_manager.api.keys import ANNOTATION_RECONCILE_ID
from upgrade_manager.api.names import event_digest, of_attempt
from upgrade_manager.api.phases import FAILED, PHASE_VALUES, SUCCEEDED, TERMINAL, phase_of
from upgrade_manager.api.text import bounded_line
from upgrade_manager.api.timestamps import parse_time
from upgrade_manager.kube import objects
from upgrade_manager.nodes.milestones import MilestoneReason

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Sequence
    from datetime import datetime

    from upgrade_manager.api.blockers import Blocker
    from upgrade_manager.kube.events import EventRecorder
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.history import History

#: Phases reached earlier are not replayed: the API server keeps events for an hour.
REPLAY_WINDOW = timedelta(minutes=50)
#: The interval at which the event of a lasting blocker is counted again.
REPEAT_WINDOW = timedelta(minutes=10)
#: Seconds for sending events that cannot be recorded again.
SEND_TIMEOUT = 1.0
SETTING_CHANGED = "SettingChanged"
SETTING_RESTORED = "SettingRestored"
#: The order of the events of one second, after warnings; the upgrade of a node ends before the next node's upgrade
#: begins.
_ORDER = (SETTING_CHANGED, MilestoneReason.NODE_UPGRADED, *MilestoneReason, SETTING_RESTORED)
#: Of a node that held by pauseBefore.
NODE_CONTINUED = "NodeContinued"
TOOLKIT_IMAGE_CHOSEN = "ToolkitImageChosen"
TOOLKIT_TAG_GUESSED = "ToolkitTagGuessed"
_RANKS = {
    **{str(reason): f"n{_ORDER.index(reason)}" for reason in _ORDER},
    TOOLKIT_IMAGE_CHOSEN: "t0",
    TOOLKIT_TAG_GUESSED: "t1",
    UPGRADE_PAUSED: "p0",
    UPGRADE_CONTINUED: "p1",
    NODE_CONTINUED: "p2",
}
_MILESTONES = frozenset(map(str, MilestoneReason))
#: Characters of the plan's name, of up to 253, in an event's name.
_NAME_LENGTH = 200
_TIME = "phaseTransitionTimestamp"
#: VMs that an event names.
_NAMED_VMS = 10


def reconcile_annotations() -> dict[str, str]:
    """Return the annotation of Events with the id of the current reconcile, which the reconcile's log lines have."""
    reconcile_id = structlog.contextvars.get_contextvars().get("reconcile_id")
    return {ANNOTATION_RECONCILE_ID: str(reconcile_id)} if reconcile_id else {}


class PlanEvents:
    """Records events of plans; never blocks and never raises."""

    def __init__(self, recorder: EventRecorder, *, now: Callable[[], datetime], history: History) -> None:
        self._recorder = recorder
        #: Gets a row for each event, because the API server keeps events for an hour.
        self.history = history
        self._now = now
        #: By the plan's uid and attempt: the phase values that this process has handled.
        self._handled: dict[tuple[str, int], set[str]] = {}
        #: By the plan's uid: when this process last recorded each blocker.
        self._blockers: dict[str, dict[tuple[str, ...], datetime]] = {}

    def phases(self, plan: Object, values: Iterable[str]) -> None:
        """Record events of phase values that were reached just now, in order."""
        handled = self._handled.setdefault(_key(plan), set())
        for value in values:
            handled.add(value)
            self._phase(plan, value, at=self._now())

    def _phase(self, plan: Object, value: str, *, at: datetime, is_expired: bool = False) -> None:
        if phase_of(value) is None and value not in TERMINAL:
            # A newer version of the manager has recorded this phase, with its event.
            return
        reason, message = _phase_event(plan, value)
        type_, id_ = WARNING if value == FAILED else NORMAL, _id(plan, value, position=_position(value))
        self._record(plan, type_=type_, reason=reason, message=message, id_=id_, at=at, is_expired=is_expired)

    def _record(  # noqa: PLR0913  # the fields of an event
        self,
        plan: Object,
        *,
        type_: str,
        reason: str,
        message: str,
        id_: str = "",
        at: datetime | None = None,
        node: str = "",
        is_known: bool = False,
        is_expired: bool = False,
    ) -> None:
        """Add a row to the history, and send the event unless the API server does not keep it any more."""
        at = at or self._now()
        self.history.add(
            plan, type_=type_, reason=reason, message=message, id_=id_, at=at, node=node, is_known=is_known
        )
        if not is_expired:
            name = _event_name(plan, id_) if id_ else ""
            self._recorder.record(plan, type_=type_, reason=reason, message=message, name=name, is_known=is_known)

    def replay(self, plan: Object) -> None:
        """Record events of recent phases that this process has not handled.

        These phases include phases of this process whose write succeeded although the response was lost.
        """
        handled = self._handled.setdefault(_key(plan), set())
        entries = objects.status(plan).get("phaseTransitionTimestamps") or []
        missing = {
            e["phase"]: parse_time(e.get(_TIME)) for e in entries if e.get("phase") and e["phase"] not in handled
        }
        if not missing:
            return
        for phase, time in missing.items():
            if time is not None and self._is_of_attempt(plan, time):
                self._phase(plan, phase, at=time, is_expired=not self._is_recent(time))
        handled.update(missing)

    def keep(self, uids: Container[str]) -> None:
        """Forget all other plans."""
        self._handled = {key: handled for key, handled in self._handled.items() if key[0] in uids}
        self._blockers = {uid: times for uid, times in self._blockers.items() if uid in uids}
        self.history.keep(uids)

    def error(self, plan: Object, message: str) -> None:
        """Record an error that is retried; equal errors share one event with a count."""
        self._record(plan, type_=WARNING, reason=RECONCILE_ERROR, message=bounded_line(message))

    def blocked(self, plan: Object) -> None:
        """Record that something holds the cluster, once for each time in the queue, with the message of Available."""
        since = objects.text(plan, "status", "queuedSince")
        if not self._is_first(plan, f"{CONCURRENT_UPGRADE_BLOCKED}/{since}"):
            return
        message, at = objects.condition(plan, AVAILABLE).get("message") or "the cluster is in use", parse_time(since)
        self._record(
            plan,
            type_=WARNING,
            reason=CONCURRENT_UPGRADE_BLOCKED,
            message=bounded_line(message),
            id_=_id(plan, f"blocked/{since}", position=_position("")),
            at=at,
            is_expired=at is not None and not self._is_recent(at),
        )

    def blocker(self, plan: Object, blocker: Blocker, *, is_known: bool) -> None:
        """Record a blocker at its appearance, and again every few minutes while it lasts, in one event."""
        if blocker.reason is BlockerReason.NODE_PAUSED:
            # The pause and its end are milestones of the node.
            return
        times = self._blockers.setdefault(objects.uid(plan), {})
        now, last = self._now(), times.get(blocker.identity)
        if is_known and last is not None and now - last < REPEAT_WINDOW:
            return
        times[blocker.identity] = now
        # The event has the texts of the status, from which another process reads the blocker.
        entry = blocker.entry()
        message = bounded_line(f"{entry['message']}. {entry['remedy']}")
        # The process that wrote the status may have died before it sent the event.
        is_sent = is_known and last is None
        self._record(plan, type_=WARNING, reason=blocker.reason, message=message, is_known=is_sent)

    def blocker_cleared(self, plan: Object, blocker: Blocker) -> None:
        """Record that the blocker does not hold the upgrade up any more."""
        if blocker.reason is BlockerReason.NODE_PAUSED:
            return
        self._blockers.get(objects.uid(plan), {}).pop(blocker.identity, None)
        message = cleared_text(blocker.kind, blocker.namespace, blocker.name, blocker.reason)
        self._record(plan, type_=NORMAL, reason=BLOCKER_CLEARED, message=message)

    def once(
        self,
        plan: Object,
        reason: str,
        message: str,
        *,
        about: str,
        phase: str = "",
        order: int = 0,
        at: datetime | None = None,
    ) -> None:
        """Record an event of that time, or of now: once for each plan, reason and `about`, after any crash.

        An event older than the API server's retention is left out, because an earlier process has recorded it. `order`
        sorts events of one reason and second.
        """
        if not self._is_first(plan, f"{reason}/{about}"):
            return
        if at is not None and not self._is_of_attempt(plan, at):
            return
        position = _position(phase or objects.status(plan).get("currentPhase") or "") + 1
        id_ = _id(plan, f"{reason}/{about}", position=position, rank=f"{_RANKS[reason]}{order}-")
        self._record(
            plan,
            type_=NORMAL,
            reason=reason,
            message=bounded_line(message),
            id_=id_,
            at=at,
            node=about if reason in _MILESTONES else "",
            is_expired=at is not None and not self._is_recent(at),
        )

    def _is_recent(self, at: datetime) -> bool:
        """Return True if the API server still keeps the event of that time."""
        return at > self._now() - REPLAY_WINDOW

    @staticmethod
    def _is_of_attempt(plan: Object, at: datetime) -> bool:
        began = parse_time(attempt_began(objects.status(plan)))
        return began is None or at >= began

    def is_handled(self, plan: Object, reason: str, about: str) -> bool:
        """Return True if this process has recorded the event of this plan, reason and `about`."""
        return f"{reason}/{about}" in self._handled.setdefault(_key(plan), set())

    def _is_first(self, plan: Object, what: str) -> bool:
        """Return True at this process's first call for the plan, its attempt and `what`."""
        handled = self._handled.setdefault(_key(plan), set())
        is_first = what not in handled
        handled.add(what)
        return is_first

    async def sent(self, plan: Object) -> None:
        """Write the history and wait a moment until the events are sent: their source is about to be removed."""
        await self.history.write(plan)
        await self._recorder.flush(SEND_TIMEOUT)

    def warning(self, plan: Object, reason: str, message: str, *, about: str = "", first_phase: str = "") -> None:
        """Record a warning once for each plan, reason and `about`; with `first_phase`, also across later phases."""
        phase = first_phase or objects.status(plan).get("currentPhase") or ""
        id_ = _id(plan, f"{reason}/{about}" if about else reason, position=_position(phase) + 1)
        self._record(plan, type_=WARNING, reason=reason, message=bounded_line(message), id_=id_)

    def warning_once(self, plan: Object, reason: str, message: str, *, about: str) -> None:
        """Record a warning that the cluster has a record of: once for each plan, reason and `about`."""
        if self._is_first(plan, f"{reason}/{about}"):
            self.warning(plan, reason, message, about=about)

    def vms(self, plan: Object, reason: str, text: str, vms: Sequence[str]) -> None:
        """Record warnings that name all these VMs, a few in each, because a message is cut."""
        for first in range(0, len(vms), _NAMED_VMS):
            some = ", ".join(vms[first : first + _NAMED_VMS])
            self.warning(plan, reason, f"{text}: {some}", about=some)


def _key(plan: Object) -> tuple[str, int]:
    return objects.uid(plan), attempt_of(objects.status(plan))


def _phase_event(plan: Object, value: str) -> tuple[str, str]:
    """Return reason and message."""
    phase = phase_of(value)
    if value == SUCCEEDED:
        return "UpgradeSucceeded", "Upgrade completed successfully"
    if phase is None:
        cause = objects.condition(plan, "Progressing").get("message", "")
        return "UpgradeFailed", bounded_line(f"Upgrade failed: {cause}")
    if value == phase.active:
        return "PhaseTransition", f"Entering phase {phase}"
    return "PhaseCompleted", f"Completed phase {phase}"


def _position(phase: str) -> int:
    """Return the phase value's position among the events of a plan; the phase's warnings have the next position."""
    return 2 * (PHASE_VALUES.index(phase) if phase in PHASE_VALUES else len(PHASE_VALUES) if phase else 0)


def _id(plan: Object, what: str, *, position: int, rank: str = "") -> str:
    """Return the end of the event's name, of which the digest is unique for the plan, its attempt and `what`."""
    attempt = attempt_of(objects.status(plan))
    return f"{position:02}.{rank}{event_digest(objects.uid(plan), of_attempt(what, attempt))}"


def _event_name(plan: Object, id_: str) -> str:
    return f"{objects.name(plan)[:_NAME_LENGTH].rstrip('.-')}.{id_}"
