"""The blockers of an upgrade with begin and end, those that are over included: what held it up, and for how long.

report.py shows them in the timeline; pipeline/status.py records them in the plan, whose events expire.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from upgrade_manager.api.text import namespaced_name
from upgrade_manager.api.timestamps import parse_time, seconds_between
from upgrade_manager.display.cleared import cleared_by
from upgrade_manager.display.timeline import Bars, Span, SpanKind
from upgrade_manager.display.view import blocker_row
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from datetime import datetime

    from upgrade_manager.display.model import BlockerRow, EventRow, View
    from upgrade_manager.kube.objects import Object


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldUp:
    """One blocker from its begin to its end."""

    reason: str
    #: Such as `PodDisruptionBudget default/shop`.
    object: str
    #: The work that waited, such as `NodeUpgrade of node-0`; empty if that is not known.
    held: str
    message: str
    bars: Bars

    @property
    def text(self) -> str:
        """The work that waited, for which object and for which reason; most messages name the object."""
        cause = self.message if self.object in self.message else f"{self.object}: {self.message}"
        return f"{self.held} waited. {cause}" if self.held else cause

    @property
    def span(self) -> Span:
        """Its bar."""
        return self.bars.spans[0]

    @property
    def seconds(self) -> float:
        """The seconds that it lasted, or has lasted."""
        return seconds_between(self.span.begun, self.span.ended)


def holdups(plan: Object, view: View) -> tuple[HoldUp, ...]:
    """Return the recorded blockers in the order of their begins."""
    recorded = [*_past(plan, view), *_lasting(view)]
    found = [*recorded, *_reported(view, {one.reason for one in recorded})]
    return tuple(sorted(found, key=lambda one: (one.span.begun, one.span.ended, one.object)))


def held_seconds(rows: Iterable[HoldUp]) -> float:
    """Return for how long at least one blocker was there; rows are in the order of their begins."""
    total, until = 0.0, None
    for span in (row.span for row in rows):
        begun = span.begun if until is None else max(span.begun, until)
        total += max(0.0, seconds_between(begun, span.ended))
        until = span.ended if until is None else max(until, span.ended)
    return total


def _past(plan: Object, view: View) -> Iterator[HoldUp]:
    for entry in objects.items(plan, "status", "pastBlockers"):
        begun, ended = (parse_time(objects.value(entry, key)) for key in ("since", "until"))
        if begun is None or ended is None:
            continue
        row = blocker_row(entry)
        yield _holdup(row, view, _bars(row.reason, begun, ended))


def _lasting(view: View) -> Iterator[HoldUp]:
    for row in view.blockers:
        if row.since is not None:
            bars = _bars(row.reason, row.since, view.ended or view.now, is_open=view.ended is None)
            yield _holdup(row, view, bars)


def _reported(view: View, recorded: Collection[str]) -> Iterator[HoldUp]:
    """Yield the blockers that only events have: an earlier version of the manager recorded none that was over."""
    for event in view.events:
        found = cleared_by(event)
        if found is None or found.reason in recorded:
            continue
        warned = next((one for one in view.events if _is_about(one, found.reason, found.object)), None)
        if warned is not None and warned.first is not None and event.time is not None:
            yield HoldUp(
                reason=warned.reason,
                object=found.object,
                held=_phase_at(view, warned.first),
                message=warned.message,
                bars=_bars(warned.reason, warned.first, event.time),
            )


def _is_about(event: EventRow, reason: str, named: str) -> bool:
    return event.reason == reason and event.message.startswith(f"{named}: ")


def _bars(name: str, begun: datetime, ended: datetime, *, is_open: bool = False) -> Bars:
    span = Span(kind=SpanKind.HELD, begun=begun, ended=max(begun, ended), is_open=is_open)
    return Bars(name=name, spans=(span,))


def _holdup(row: BlockerRow, view: View, bars: Bars) -> HoldUp:
    return HoldUp(
        reason=row.reason,
        object=f"{row.kind} {namespaced_name(row.namespace, row.name)}",
        held=" of ".join(filter(None, (_phase_at(view, bars.spans[0].begun), row.node))),
        message=row.message,
        bars=bars,
    )


def _phase_at(view: View, moment: datetime) -> str:
    """Return the phase of that moment; after the end of one, before the next one begins, the former."""
    begun = [row for row in view.phases if row.started is not None and row.started <= moment]
    return begun[-1].name if begun else ""
