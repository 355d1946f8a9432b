"""The upgrade as bars over time, a Gantt chart: what each phase and each node did when."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from upgrade_manager.api.node_states import state_of
from upgrade_manager.api.phases import PhaseName
from upgrade_manager.display.attempts import Window, windows
from upgrade_manager.display.model import PhaseState
from upgrade_manager.nodes.milestones import MilestoneReason

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from upgrade_manager.display.milestones import Milestones
    from upgrade_manager.display.model import NodeRow, PhaseRow, View


class SpanKind(StrEnum):
    """The work during a span; the value is a CSS class of the page."""

    DONE = "done"
    ACTIVE = "active"
    FAILED = "failed"
    PAUSED = "paused"
    DRAINING = "draining"
    UPGRADING = "upgrading"
    REBOOTING = "rebooting"
    #: The times of its parts are not recorded.
    UNRECORDED = "unrecorded"
    #: A blocker held the upgrade up.
    HELD = "held"


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A bar."""

    kind: SpanKind
    begun: datetime
    ended: datetime
    #: It goes on, so its end is the present.
    is_open: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """The bars of one phase or node, in order."""

    name: str
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """All bars, from the start of the upgrade to its end or the present."""

    begun: datetime
    ended: datetime
    ticks: tuple[datetime, ...]
    #: Empty for a plan of one attempt.
    attempts: tuple[Bars, ...]
    phases: tuple[Bars, ...]
    nodes: tuple[Bars, ...]

    @property
    def is_within_a_day(self) -> bool:
        """True if all of its times of day are on one date."""
        return self.begun.date() == self.ended.date()

    def share(self, moment: datetime) -> float:
        """Return where the moment is, from 0 at the start to 1 at the end."""
        return min(1.0, max(0.0, (moment - self.begun) / (self.ended - self.begun)))


_UPGRADED = MilestoneReason.NODE_UPGRADED
#: The work that begins with a milestone.
_BEGINS = {
    MilestoneReason.NODE_PAUSED: SpanKind.PAUSED,
    MilestoneReason.NODE_DRAINING: SpanKind.DRAINING,
    MilestoneReason.NODE_UPGRADING: SpanKind.UPGRADING,
    MilestoneReason.NODE_REBOOTING: SpanKind.REBOOTING,
}
_PHASES = {
    PhaseState.DONE: SpanKind.DONE,
    PhaseState.ACTIVE: SpanKind.ACTIVE,
    PhaseState.FAILED: SpanKind.FAILED,
}
#: Seconds between two marks of the axis.
_STEPS = (1, 5, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 7 * 86400)
_MOST_TICKS = 8


def timeline(
    view: View, recorded: Mapping[int, Mapping[str, Milestones]], returned: Mapping[str, datetime]
) -> Timeline | None:
    """Return the bars of an upgrade that has started.

    `recorded` has the milestones of each attempt. `returned` has the time since which each node is Ready: where events
    have expired, it is the end of its upgrade.
    """
    if view.started is None:
        return None
    begun, ended = view.started, max(view.ended or view.now, view.started + timedelta(seconds=1))
    parts = tuple(windows(view))
    return Timeline(
        begun=begun,
        ended=ended,
        ticks=ticks(begun, ended),
        attempts=tuple(_attempt(view, one) for one in parts) if len(parts) > 1 else (),
        phases=tuple(Bars(name=row.name, spans=tuple(_phase(row, parts, view.now))) for row in view.phases),
        nodes=tuple(_nodes(view, parts, recorded, returned)),
    )


def ticks(begun: datetime, ended: datetime) -> tuple[datetime, ...]:
    """Return round moments for the axis, at most eight."""
    seconds = (ended - begun).total_seconds()
    step = next((step for step in _STEPS if seconds / step < _MOST_TICKS), int(seconds / _MOST_TICKS) + 1)
    midnight = begun.replace(hour=0, minute=0, second=0, microsecond=0)
    first = -(-(begun - midnight).total_seconds() // step)
    count = int((seconds + (begun - midnight).total_seconds()) // step - first) + 1
    return tuple(midnight + timedelta(seconds=(first + index) * step) for index in range(count))


def _attempt(view: View, window: Window) -> Bars:
    is_last = window.number == view.attempt
    state = PhaseState.FAILED if window.has_failed else PhaseState.DONE if view.ended else PhaseState.ACTIVE
    span = Span(kind=_PHASES[state], begun=window.begun, ended=window.ended, is_open=is_last and view.ended is None)
    return Bars(name=f"Attempt {window.number}", spans=(span,))


def _phase(row: PhaseRow, parts: Sequence[Window], now: datetime) -> Iterator[Span]:
    """Yield a bar for each attempt that ran the phase; all but the last one have failed in it."""
    if row.started is None:
        return
    ended = row.ended or now
    found = [one for one in parts if row.started < one.ended and one.begun < ended] or parts[-1:]
    for part in found:
        is_last = part is found[-1]
        yield Span(
            kind=_PHASES[row.state] if is_last else SpanKind.FAILED,
            begun=max(row.started, part.begun) if len(found) > 1 else row.started,
            ended=ended if is_last else part.ended,
            is_open=is_last and row.ended is None,
        )


def _nodes(
    view: View,
    parts: Sequence[Window],
    recorded: Mapping[int, Mapping[str, Milestones]],
    returned: Mapping[str, datetime],
) -> Iterator[Bars]:
    """Yield the bars of all nodes; Rancher upgrades one after the other, so one begins when the one before it ends."""
    phase = next(row for row in view.phases if row.name == PhaseName.NODE_UPGRADE)
    spans: dict[str, list[Span]] = {row.name: [] for row in view.nodes}
    if phase.started is not None:
        limit = phase.ended or view.now
        for part in parts:
            window = replace(part, begun=max(part.begun, phase.started), ended=min(part.ended, limit))
            if window.begun <= window.ended:
                for name, found in _in_attempt(view, window, recorded.get(part.number, {}), returned):
                    spans[name] += found
    yield from (Bars(name=name, spans=tuple(found)) for name, found in spans.items())


def _in_attempt(
    view: View, window: Window, recorded: Mapping[str, Milestones], returned: Mapping[str, datetime]
) -> Iterator[tuple[str, Iterator[Span]]]:
    """Yield the bars of each node in one attempt."""
    ends = {row.name: end for row in view.nodes if (end := _end(row, recorded, returned, window)) is not None}
    ordered = [window.begun, *sorted(ends.values())]
    is_last = window.number == view.attempt
    for row in view.nodes:
        end, state = ends.get(row.name), state_of(row.state)
        known = _Node(
            milestones=recorded.get(row.name, {}),
            start=ordered[max(0, bisect_left(ordered, end or window.ended) - 1)],
            end=end,
            limit=window.ended,
            is_done=is_last and state is not None and state.upgraded,
            has_failed=row.state.endswith("Failed") if is_last else row.name == window.node,
            is_open=is_last and not view.state.is_end,
        )
        # A node that failed goes on where its Job runs.
        is_late = len(view.nodes) == 1 or window.number > 1
        yield row.name, known.spans(may_begin_late=is_late)


def _end(
    row: NodeRow,
    recorded: Mapping[str, Milestones],
    returned: Mapping[str, datetime],
    window: Window,
) -> datetime | None:
    """Return when the upgrade of a node ended; None if it did not, or if that is unknown."""
    state = state_of(row.state)
    if state is None or not state.upgraded:
        return None
    found = recorded.get(row.name, {}).get(_UPGRADED) or returned.get(row.name)
    return found if found is not None and window.begun <= found <= window.ended else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Node:
    """The known times of one node's upgrade in one attempt."""

    milestones: Milestones
    #: The time at which the node before it was done.
    start: datetime
    #: None if it is not done, or if that is unknown.
    end: datetime | None
    #: The end of the phase or of the attempt, or the present.
    limit: datetime
    is_done: bool
    has_failed: bool
    #: Its last step goes on.
    is_open: bool

    def spans(self, *, may_begin_late: bool) -> Iterator[Span]:
        """Yield the spans, each up to the next milestone; what came before the first known one is unrecorded."""
        begins = [(time, reason) for reason, time in self.milestones.items() if reason is not _UPGRADED]
        begins.sort(key=lambda pair: pair[0])
        yield from self._before(begins[0] if begins else None, may_begin_late=may_begin_late)
        following = [*(time for time, _ in begins[1:]), self.end]
        for (time, reason), after in zip(begins, following, strict=False):
            kind = _BEGINS.get(reason)
            if kind is None or (after is None and self.is_done):
                continue
            if after is None and self.has_failed:
                kind = SpanKind.FAILED
            yield Span(
                kind=kind, begun=time, ended=max(time, after or self.limit), is_open=after is None and self.is_open
            )

    def _before(self, first: tuple[datetime, MilestoneReason] | None, *, may_begin_late: bool) -> Iterator[Span]:
        begins = {MilestoneReason.NODE_PAUSED, MilestoneReason.NODE_DRAINING}
        if may_begin_late:
            begins.add(MilestoneReason.NODE_UPGRADING)
        until = first[0] if first is not None else self.end
        if until is not None and self.start < until and (first is None or first[1] not in begins):
            yield Span(kind=SpanKind.UNRECORDED, begun=self.start, ended=until)
