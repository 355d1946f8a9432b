"""What there is to see of an upgrade, computed from the plan, its events and the time, and nothing else."""

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

#: So many nodes get a row of their own; of the others only the states are counted.
NODE_ROWS = 12
EVENT_ROWS = 6

#: The states after which nothing more happens to a node while the nodes are upgraded.
_RESTING = frozenset({"ImagePreloaded", "PostDrained", "SingleNodeUpgraded", "ImageCleaned"})


class Mark(StrEnum):
    """How far a phase is."""

    PENDING = "pending"
    ACTIVE = "active"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseRow:
    """One of the eight phases."""

    name: str
    mark: Mark
    #: How long it took or has taken so far; None before it begins.
    seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRow:
    """One node."""

    name: str
    state: str
    #: Why it is in that state, where the manager says so.
    note: str


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
    """A whole picture."""

    plan: str
    #: What becomes what: `Harvester v1.7.1 → v1.8.0`.
    route: str
    #: Seconds since the plan was accepted, up to its end.
    elapsed: float
    phases: tuple[PhaseRow, ...]
    #: All of them, in the order of their numbers.
    nodes: tuple[NodeRow, ...]
    #: What the upgrade waits for now; empty between two phases and when it has ended.
    waiting: str
    #: An error that is being retried, or why the plan does not run; empty when all is well.
    trouble: str
    #: The latest ones, oldest first.
    events: tuple[EventRow, ...]
    #: Empty while the plan runs, then `Succeeded`, `Failed` or `Blocked`.
    outcome: str
    #: Why it failed; empty otherwise.
    cause: str


def build(plan: Object, events: Sequence[Object], *, now: datetime) -> View:
    """Draw the picture of a plan; every part of it may be missing, because the manager may not have got there yet."""
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
        trouble=_message(plan, "Degraded") if objects.is_condition_true(plan, "Degraded") else "",
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
        NodeRow(name=name, state=entry.get("state", ""), note=entry.get("message", ""))
        for name, entry in sorted(statuses.items(), key=lambda item: (len(item[0]), item[0]))
    )


def select(nodes: Sequence[NodeRow]) -> tuple[Sequence[NodeRow], str]:
    """Choose the nodes that get a row, those that something happens to first, and count the others by state."""
    if len(nodes) <= NODE_ROWS:
        return nodes, ""
    by_interest = sorted(nodes, key=lambda row: row.state in _RESTING)
    counts = Counter(row.state for row in by_interest[NODE_ROWS:])
    return by_interest[:NODE_ROWS], ", ".join(f"{count} {state}" for state, count in counts.most_common())


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
    """By time, which is in whole seconds, and within a second by the order of their writing."""
    version = objects.resource_version(event)
    return _moment(event), len(version), version


def _moment(event: Object) -> str:
    return str(
        event.get("lastTimestamp") or event.get("eventTime") or objects.metadata(event).get("creationTimestamp") or ""
    )


def _message(plan: Object, condition: str) -> str:
    return str((objects.condition(plan, condition) or {}).get("message", ""))


def _seconds(begin: datetime, end: datetime) -> float:
    """Never negative: timestamps are whole seconds and the clocks of two programs may differ."""
    return max(0.0, (end - begin).total_seconds())
