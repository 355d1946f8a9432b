"""What the demo shows of an upgrade: a pure function of the plan, its events and the time."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from upgrade_manager.api.conditions import CONCURRENT_UPGRADE_BLOCKED
from upgrade_manager.api.phases import FAILED, SUCCEEDED, PhaseName
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from upgrade_manager.kube.objects import Object

#: Nodes with a row; the others are counted by state.
NODE_ROWS = 12
EVENT_ROWS = 6

#: States in which a node waits for other nodes.
_RESTING = frozenset({"ImagePreloaded", "PostDrained", "SingleNodeUpgraded", "ImageCleaned"})


class Mark(StrEnum):
    """A phase's state."""

    PENDING = "pending"
    ACTIVE = "active"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseRow:
    """One of the eight phases."""

    name: str
    mark: Mark
    #: The duration so far; None before the start.
    seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRow:
    """One node."""

    name: str
    state: str
    #: The reason for the state; may be empty.
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRow:
    """One event about the plan."""

    time: str
    type: str
    reason: str
    message: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """All that is shown."""

    plan: str
    #: Such as `Harvester v1.7.1 → v1.8.0`.
    route: str
    #: Seconds from the plan's acceptance to its end, or until now.
    elapsed: float
    phases: tuple[PhaseRow, ...]
    #: In the order of their numbers.
    nodes: tuple[NodeRow, ...]
    #: What the upgrade waits for; empty between two phases and at the end.
    waiting: str
    #: An error that is retried; empty otherwise.
    last_error: str
    #: The latest, oldest first.
    events: tuple[EventRow, ...]
    #: Empty while the plan runs, then `Succeeded`, `Failed` or `Blocked`.
    outcome: str
    #: Why the plan failed or is blocked; empty otherwise.
    cause: str


def build(plan: Object, events: Sequence[Object], *, now: datetime) -> View:
    """Build the view of a plan, whose status may be incomplete."""
    status = objects.status(plan)
    times = _times(status)
    outcome, cause = _outcome(plan)
    end = times.get(outcome, now)
    begin = min([*times.values(), end])
    phases = tuple(_phase(phase, times, outcome=outcome, end=end) for phase in PhaseName)
    marks = {row.mark for row in phases}
    is_between = Mark.DONE in marks and Mark.ACTIVE not in marks
    return View(
        plan=objects.name(plan),
        route=_route(objects.spec(plan), status),
        elapsed=_seconds(begin, end),
        phases=phases,
        nodes=_nodes(status),
        waiting="" if outcome or is_between else _message(plan, "Progressing"),
        last_error=_message(plan, "Degraded") if objects.is_condition_true(plan, "Degraded") else "",
        events=_events(events),
        outcome=outcome,
        cause=cause,
    )


def _times(status: Mapping[str, Any]) -> dict[str, datetime]:
    entries = status.get("phaseTransitionTimestamps") or []
    return {entry["phase"]: datetime.fromisoformat(entry["phaseTransitionTimestamp"]) for entry in entries}


def _outcome(plan: Object) -> tuple[str, str]:
    current = objects.status(plan).get("currentPhase", "")
    if current == FAILED:
        return FAILED, _message(plan, "Progressing")
    if current == SUCCEEDED:
        return SUCCEEDED, ""
    available = objects.condition(plan, "Available") or {}
    if available.get("reason") == CONCURRENT_UPGRADE_BLOCKED:
        return "Blocked", available.get("message", "")
    return "", ""


def _phase(phase: PhaseName, times: Mapping[str, datetime], *, outcome: str, end: datetime) -> PhaseRow:
    begun, completed = times.get(phase.active), times.get(phase.completed)
    if begun is None:
        return PhaseRow(name=phase.value, mark=Mark.PENDING, seconds=None)
    if completed is not None:
        return PhaseRow(name=phase.value, mark=Mark.DONE, seconds=_seconds(begun, completed))
    mark = Mark.FAILED if outcome == FAILED else Mark.ACTIVE
    return PhaseRow(name=phase.value, mark=mark, seconds=_seconds(begun, end))


def _nodes(status: Mapping[str, Any]) -> tuple[NodeRow, ...]:
    statuses = status.get("nodeUpgradeStatuses") or {}
    return tuple(
        NodeRow(name=name, state=entry.get("state", ""), message=entry.get("message", ""))
        for name, entry in sorted(statuses.items(), key=lambda item: (len(item[0]), item[0]))
    )


def select(nodes: Sequence[NodeRow]) -> tuple[Sequence[NodeRow], str]:
    """Select the nodes with a row, those in progress first, and count the others by state."""
    if len(nodes) <= NODE_ROWS:
        return nodes, ""
    by_progress = sorted(nodes, key=lambda row: row.state in _RESTING)
    counts = Counter(row.state for row in by_progress[NODE_ROWS:])
    return by_progress[:NODE_ROWS], ", ".join(f"{count} {state}" for state, count in counts.most_common())


def _route(spec: Mapping[str, Any], status: Mapping[str, Any]) -> str:
    release = status.get("releaseMetadata") or {}
    target = release.get("harvester") or spec.get("version") or f"image {spec.get('image', '')}"
    previous = status.get("previousVersion")
    return f"Harvester {previous} → {target}" if previous else f"Harvester → {target}"


def _events(events: Sequence[Object]) -> tuple[EventRow, ...]:
    latest = sorted(events, key=_order)[-EVENT_ROWS:]
    return tuple(
        EventRow(
            time=_moment(event)[11:19],
            type=event.get("type", ""),
            reason=event.get("reason", ""),
            message=event.get("message", ""),
            count=event.get("count") or 1,
        )
        for event in latest
    )


def _order(event: Object) -> tuple[str, int, str]:
    """Sort by time, which is in whole seconds, then by the order of the writes."""
    version = objects.resource_version(event)
    return _moment(event), len(version), version


def _moment(event: Object) -> str:
    return str(
        event.get("lastTimestamp") or event.get("eventTime") or objects.metadata(event).get("creationTimestamp") or ""
    )


def _message(plan: Object, condition: str) -> str:
    return str((objects.condition(plan, condition) or {}).get("message", ""))


def _seconds(begin: datetime, end: datetime) -> float:
    """Return the duration, at least 0: timestamps are in whole seconds and clocks differ."""
    return max(0.0, (end - begin).total_seconds())
