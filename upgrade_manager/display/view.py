"""Builds the view of an upgrade: a pure function of the plan, its events and the time.

Objects may be incomplete or invalid: plans of other versions, or without the CRD's validation. Texts are printable.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from upgrade_manager.api.attempts import attempt_began, attempt_of, seconds_of_work
from upgrade_manager.api.conditions import IMAGES_NOT_REMOVED
from upgrade_manager.api.migration_failure import summary
from upgrade_manager.api.node_states import NodeState, state_of
from upgrade_manager.api.phases import FAILED, PHASES, SUCCEEDED, skipped_phases
from upgrade_manager.api.progress import progress_ratio
from upgrade_manager.api.text import one_line, success_remarks
from upgrade_manager.api.timestamps import parse_time
from upgrade_manager.display.attempts import attempt_rows, attempt_wait, awaits_attempt
from upgrade_manager.display.cleared import marked
from upgrade_manager.display.expectation import UNKNOWN_PACE, Pace, expected_end
from upgrade_manager.display.leader import NOT_READ, LeaseReading, leader_row
from upgrade_manager.display.milestones import (
    ByAttempt,
    Milestones,
    event_time,
    latest_milestones,
    milestones_by_attempt,
)
from upgrade_manager.display.model import (
    BlockerRow,
    EventRow,
    NodeRow,
    PhaseRow,
    PhaseState,
    PlanState,
    View,
)
from upgrade_manager.display.remedies import shown_remedies
from upgrade_manager.kube import objects
from upgrade_manager.nodes.milestones import MilestoneReason

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from upgrade_manager.api.phases import PhaseName
    from upgrade_manager.kube.objects import Object

#: The warnings that are shown: the last ones.
WARNING_ROWS = 5
#: As in api.display, whose import would take as long as all the others.
_QUEUED, _PAUSED = "Queued", "Paused"
#: Characters of a text.
_MAX_TEXT = 1000
#: The event that records when a node reached a state.
MILESTONES = {
    NodeState.UPGRADE_PAUSED: MilestoneReason.NODE_PAUSED,
    NodeState.PRE_DRAINING: MilestoneReason.NODE_DRAINING,
    NodeState.POST_DRAINING: MilestoneReason.NODE_UPGRADING,
    NodeState.SINGLE_NODE_UPGRADING: MilestoneReason.NODE_UPGRADING,
    NodeState.WAITING_REBOOT: MilestoneReason.NODE_REBOOTING,
    NodeState.POST_DRAINED: MilestoneReason.NODE_UPGRADED,
    NodeState.SINGLE_NODE_UPGRADED: MilestoneReason.NODE_UPGRADED,
}
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


def build(
    plan: Object, events: Sequence[Object], *, now: datetime, pace: Pace = UNKNOWN_PACE, lease: LeaseReading = NOT_READ
) -> View:
    """Build the view of a plan from its events, in any order, the pace of earlier upgrades, and the managers' Lease."""
    return view_of(plan, events, milestones_by_attempt(plan, events), now=now, pace=pace, lease=lease)


def view_of(
    plan: Object, events: Sequence[Object], by_attempt: ByAttempt, *, now: datetime, pace: Pace, lease: LeaseReading
) -> View:
    """Build the view of a plan whose events, with the milestones in these, the caller has read."""
    status, state = objects.mapping(plan, "status"), state_of_plan(plan)
    times, started, ended, until = _span(plan, state, now=now)
    nodes, rows = _nodes(plan, latest_milestones(by_attempt)), marked(map(_event, sorted(events, key=_order)))
    phases = _phases(plan, times, state, end=until)
    return View(
        plan=objects.name(plan),
        state=state,
        status=_status(plan, state),
        phase=_line(status, "currentPhase"),
        previous_version=_line(status, "previousVersion"),
        target_version=_target(plan),
        toolkit_image=_toolkit_image(status),
        on_migration_failure=_on_migration_failure(plan),
        checksums=_checksums(status),
        created_by=_line(status, "createdBy"),
        started=started,
        ended=ended,
        elapsed_seconds=seconds_of_work(status, started, until) if started else 0.0,
        attempt=attempt_of(status),
        attempts=attempt_rows(status, cause_limit=_MAX_TEXT),
        estimated_completion=_estimate(plan, phases, nodes, pace, now=now) if state is PlanState.RUNNING else None,
        progress=_progress(state, times, nodes),
        phases=phases,
        nodes=nodes,
        waiting="" if state.is_end or _is_between_phases(plan, phases) else _waiting(plan, state),
        last_error=_message(plan, "Degraded") if _is_retried(plan, state) else "",
        cause=_cause(plan, state),
        deleting=bool(objects.text(plan, "metadata", "deletionTimestamp")),
        cleaning_up=objects.is_true(status, "cleanupPending"),
        next_steps=() if awaits_attempt(plan) else shown_remedies(status.get("nextSteps"), text=""),
        blockers=tuple(blocker_row(entry) for entry in objects.items(status, "blockers") if isinstance(entry, dict)),
        warnings=tuple(row for row in rows if row.type == "Warning")[-WARNING_ROWS:],
        leader=leader_row(lease, is_needed=_needs_leader(status, state), now=now),
        events=rows,
        now=now,
    )


def _span(
    plan: Object, state: PlanState, *, now: datetime
) -> tuple[dict[str, datetime], datetime | None, datetime | None, datetime]:
    """Return the times of its phases, the start and the end of the upgrade, and the time until which it has worked."""
    times = _times(objects.mapping(plan, "status"))
    ended = times.get(state) or (max(times.values(), default=None) if state.is_end else None)
    failed = times.get(FAILED) if awaits_attempt(plan) else None
    return times, min(times.values(), default=None), ended, ended or failed or now


def _estimate(
    plan: Object, phases: Sequence[PhaseRow], nodes: Sequence[NodeRow], pace: Pace, *, now: datetime
) -> datetime | None:
    """Return the expected end of a plan that runs: the manager's, or that by earlier upgrades."""
    if _is_held(plan):
        return None
    began = parse_time(attempt_began(objects.mapping(plan, "status"))) or _LONG_AGO
    known = parse_time(objects.value(plan, "status", "estimatedCompletion"))
    return known or expected_end(phases, nodes, pace, began=began, now=now)


def _toolkit_image(status: Mapping[str, Any]) -> str:
    repository, tag, digest, kind = (
        _line(status, "toolkitImage", key) for key in ("repository", "tag", "digest", "kind")
    )
    if not repository:
        return ""
    name = f"{repository}@{digest}" if digest else f"{repository}:{tag}"
    guessed = ", the tag is a guess" if objects.is_true(status, "toolkitImage", "guessed") else ""
    return f"{name} (kind {kind}{guessed})"


def _on_migration_failure(plan: Object) -> str:
    kind = _line(objects.mapping(plan, "status"), "toolkitImage", "kind")
    requested = objects.text(plan, "spec", "nodeUpgradeOption", "onMigrationFailure")
    return summary(requested, kind=kind) if kind else ""


def _checksums(status: Mapping[str, Any]) -> str:
    recorded = objects.mapping(status, "checksums")
    if not recorded:
        return ""
    iso = "ISO checked" if objects.is_true(recorded, "isoChecked") else "ISO not checked (it has no checksum)"
    if "checked" not in recorded:
        return iso
    if objects.is_true(recorded, "checked"):
        return f"{iso}, Jobs check {len(objects.mapping(recorded, 'files'))} files of it"
    return f"{iso}, Jobs check no files of it ({_line(recorded, 'message') or 'reason unknown'})"


def state_of_plan(plan: Object) -> PlanState:
    """Return the state of a plan, for displays."""
    phase = objects.text(plan, "status", "currentPhase")
    if objects.text(plan, "status", "display", "state") == _QUEUED:
        # A failed plan that is resumed may be queued.
        return PlanState.PENDING
    if awaits_attempt(plan):
        return PlanState.PENDING
    if phase in {SUCCEEDED, FAILED}:
        return PlanState(phase)
    return PlanState.RUNNING if phase else PlanState.PENDING


def _needs_leader(status: Mapping[str, Any], state: PlanState) -> bool:
    return not state.is_end or objects.is_true(status, "cleanupPending")


def _status(plan: Object, state: PlanState) -> str:
    """Return the state in one word; managers of earlier versions do not write it, and leave the schema's default."""
    written = _line(plan, "status", "display", "state")
    if awaits_attempt(plan):
        # Until the manager has seen the request, the failure stands there.
        return written if written in {_QUEUED, _PAUSED} else str(state)
    if written and (written != PlanState.PENDING or state is PlanState.PENDING):
        return written
    if state is PlanState.RUNNING and _is_true(plan, "Stalled"):
        return f"Stalled: {_line(objects.condition(plan, 'Stalled'), 'reason')}"
    return str(state)


def _times(status: Mapping[str, Any]) -> dict[str, datetime]:
    entries = objects.items(status, "phaseTransitionTimestamps")
    times = {objects.text(one, "phase"): parse_time(objects.value(one, "phaseTransitionTimestamp")) for one in entries}
    return {phase: time for phase, time in times.items() if phase and time is not None}


def _phases(plan: Object, times: Mapping[str, datetime], state: PlanState, *, end: datetime) -> tuple[PhaseRow, ...]:
    status, failed = objects.mapping(plan, "status"), state is PlanState.FAILED or awaits_attempt(plan)
    skipped = skipped_phases({*times, state})
    rows = (_phase(phase, status, times, failed=failed, end=end) for phase in PHASES)
    return tuple(replace(row, state=PhaseState.SKIPPED) if row.name in skipped else row for row in rows)


def _phase(
    phase: PhaseName, status: Mapping[str, Any], times: Mapping[str, datetime], *, failed: bool, end: datetime
) -> PhaseRow:
    begun, completed = times.get(phase.active), times.get(phase.completed)
    if begun is None:
        return PhaseRow(name=phase.value, state=PhaseState.PENDING, started=None, ended=None, seconds=None)
    mark = PhaseState.DONE if completed is not None else PhaseState.FAILED if failed else PhaseState.ACTIVE
    ended = None if mark is PhaseState.ACTIVE else completed or end
    seconds = seconds_of_work(status, begun, ended or end)
    return PhaseRow(name=phase.value, state=mark, started=begun, ended=ended, seconds=seconds)


def _is_between_phases(plan: Object, phases: Sequence[PhaseRow]) -> bool:
    """Return True after the end of a phase and before the next one, while the message is that of the ended one."""
    marks = {row.state for row in phases}
    reason = objects.text(objects.condition(plan, "Progressing"), "reason")
    is_current = reason == objects.text(plan, "status", "currentPhase") or awaits_attempt(plan)
    return PhaseState.DONE in marks and PhaseState.ACTIVE not in marks and not is_current


def _progress(state: PlanState, times: Mapping[str, datetime], nodes: Sequence[NodeRow]) -> float:
    valid = {
        "currentPhase": state,
        "phaseTransitionTimestamps": [{"phase": phase} for phase in times],
        "nodeUpgradeStatuses": {row.name: {"state": row.state} for row in nodes},
    }
    return progress_ratio(valid)


def _nodes(plan: Object, recorded: Mapping[str, Milestones]) -> tuple[NodeRow, ...]:
    rows = []
    for name, entry in objects.mapping(plan, "status", "nodeUpgradeStatuses").items():
        state = _line(entry, "state")
        milestone = MILESTONES.get(known) if (known := state_of(state)) else None
        row = NodeRow(
            name=printable(name),
            state=state,
            since=parse_time(_line(entry, "since")) or (recorded[name].get(milestone) if milestone else None),
            reason=_line(entry, "reason"),
            message=_line(entry, "message"),
        )
        rows.append(row)
    return tuple(sorted(rows, key=lambda row: (len(row.name), row.name)))


def blocker_row(entry: Mapping[str, Any]) -> BlockerRow:
    """Return the row of an entry of `status.blockers` or `status.pastBlockers`."""
    texts = {key: _line(entry, key) for key in ("kind", "namespace", "name", "node", "reason", "message", "remedy")}
    remedies = shown_remedies(entry.get("remedies"), text=texts["remedy"])
    return BlockerRow(**texts, remedies=remedies, since=parse_time(entry.get("since")))


def _event(event: Object) -> EventRow:
    last = event_time(event)
    return EventRow(
        first=parse_time(event.get("firstTimestamp")) or last,
        time=last,
        type=_line(event, "type"),
        reason=_line(event, "reason"),
        message=_line(event, "message"),
        count=objects.number(event, "count") or 1,
        cleared=None,
    )


def _order(event: Object) -> tuple[datetime, int, str]:
    """Sort by time, which is in whole seconds, then by the order of the writes."""
    version = objects.text(event, "metadata", "resourceVersion")
    return event_time(event) or _LONG_AGO, len(version), version


def _target(plan: Object) -> str:
    spec = objects.mapping(plan, "spec")
    release = _line(plan, "status", "releaseMetadata", "harvester")
    return release or _line(spec, "version") or f"image {_line(spec, 'image')}".rstrip()


def _cause(plan: Object, state: PlanState) -> str:
    if state is PlanState.FAILED:
        return _message(plan, "Progressing")
    if state is PlanState.SUCCEEDED:
        images = _message(plan, IMAGES_NOT_REMOVED) if _is_true(plan, IMAGES_NOT_REMOVED) else ""
        return ". ".join(filter(None, (success_remarks(_message(plan, "Progressing")), images)))
    return ""


def _is_retried(plan: Object, state: PlanState) -> bool:
    """Return True for an error that the manager retries; a failed plan is Degraded, too."""
    return _is_true(plan, "Degraded") and not state.is_end and not awaits_attempt(plan)


def _waiting(plan: Object, state: PlanState) -> str:
    """Return the wait of the current phase, or the pause; for a plan that has not begun, its wait for another plan."""
    if awaits_attempt(plan):
        return printable(attempt_wait(plan))
    if state is PlanState.PENDING:
        return _message(plan, "Available") or _message(plan, "Reconciling")
    return _message(plan, "Paused" if _is_true(plan, "Paused") else "Progressing")


def _is_held(plan: Object) -> bool:
    return _is_true(plan, "Stalled") or _is_true(plan, "Paused")


def _is_true(plan: Object, condition: str) -> bool:
    return objects.text(objects.condition(plan, condition), "status") == "True"


def _message(plan: Object, condition: str) -> str:
    return _line(objects.condition(plan, condition), "message")


def _line(obj: object, *path: str) -> str:
    return printable(objects.text(obj, *path))


def printable(text: str) -> str:
    """Return the text as one line that cannot control a terminal."""
    line = one_line(text[: 2 * _MAX_TEXT])
    return line if len(line) <= _MAX_TEXT else line[: _MAX_TEXT - 1] + "…"
