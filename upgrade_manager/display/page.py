"""The report as one HTML page without scripts, fonts or images from elsewhere: it opens from disk, offline."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from upgrade_manager import __version__
from upgrade_manager.api.timestamps import format_duration, format_time, seconds_between
from upgrade_manager.display.attempts import attempt_text
from upgrade_manager.display.model import PhaseState, PlanState
from upgrade_manager.display.timeline import SpanKind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from upgrade_manager.display.report import Report
    from upgrade_manager.display.timeline import Span, Timeline

#: In place of what is not known.
ABSENT = "\N{EN DASH}"
#: More nodes than that are folded away until the reader opens them.
UNFOLDED_NODES = 50
#: The names of each kind in the legend and in the descriptions of bars.
LABELS = {
    SpanKind.DONE: "Completed phase",
    SpanKind.ACTIVE: "Running phase",
    SpanKind.FAILED: "Failed",
    SpanKind.PAUSED: "Paused",
    SpanKind.DRAINING: "Draining, Kubernetes",
    SpanKind.UPGRADING: "Operating system",
    SpanKind.REBOOTING: "Rebooting",
    SpanKind.UNRECORDED: "Times not recorded",
    SpanKind.HELD: "Held up",
}


def to_html(report: Report) -> str:
    """Return the page. All texts are escaped."""
    environment = Environment(
        autoescape=True,
        loader=FileSystemLoader(Path(__file__).parent),
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    shortest = clock if report.timeline is None or report.timeline.is_within_a_day else moment
    filters = {"clock": clock, "duration": duration, "moment": moment, "percent": percent, "shortest": shortest}
    environment.filters.update(filters)
    page = environment.get_template("report.html")
    return page.render(
        report=report,
        view=report.view,
        absent=ABSENT,
        attempt_seconds=lambda row: seconds_between(row.spans[0].begun, row.spans[-1].ended),
        attempt_text=attempt_text,
        axis=axis(report.timeline) if report.timeline is not None else [],
        describe=partial(describe, shortest),
        steps=steps,
        labels=LABELS,
        legend=legend(report),
        PhaseState=PhaseState,
        PlanState=PlanState,
        upgraded=sum(node.is_upgraded for node in report.nodes),
        unfolded_nodes=UNFOLDED_NODES,
        utc=format_time,
        version=__version__,
    )


def legend(report: Report) -> list[SpanKind]:
    """Return the kinds of bars that occur, in the order of an upgrade."""
    timeline = report.timeline
    rows = (*timeline.phases, *timeline.nodes, *(row.bars for row in report.holdups)) if timeline is not None else ()
    found = {span.kind for row in rows for span in row.spans}
    return [kind for kind in SpanKind if kind in found]


def axis(timeline: Timeline) -> list[tuple[float, list[str]]]:
    """Return where the marks of the axis are, and the lines of their labels."""
    form = "%H:%M:%S" if any(mark.second for mark in timeline.ticks) else "%H:%M"
    clocks = [mark.strftime(form) for mark in timeline.ticks]
    days = [f"{mark:%b} {mark.day}" for mark in timeline.ticks]
    lines = [clocks] if timeline.is_within_a_day else [days] if {*clocks} == {"00:00"} else [clocks, days]
    return [(timeline.share(mark), [*label]) for mark, *label in zip(timeline.ticks, *lines, strict=True)]


def describe(text: Callable[[datetime], str], name: str, span: Span) -> str:
    """Return the description of a bar with the texts of its times, for tooltips and screen readers."""
    end = "now" if span.is_open else text(span.ended)
    took = duration(seconds_between(span.begun, span.ended))
    return f"{name}: {LABELS[span.kind]}, {text(span.begun)} to {end}, {took}"


def steps(spans: Sequence[Span]) -> str:
    """Return the steps of a node with their durations, which its bars show by length."""
    return " · ".join(f"{LABELS[span.kind]} {duration(seconds_between(span.begun, span.ended))}" for span in spans)


def moment(time: datetime | None) -> str:
    """Return date and time of day."""
    return f"{time:%Y-%m-%d %H:%M:%S}" if time is not None else ABSENT


def clock(time: datetime | None) -> str:
    """Return the time of day."""
    return f"{time:%H:%M:%S}" if time is not None else ABSENT


def duration(seconds: float | None) -> str:
    """Return a duration."""
    return format_duration(seconds) if seconds is not None else ABSENT


def percent(share: float) -> str:
    """Return a position for SVG and CSS."""
    return f"{100 * share:.3f}%"
