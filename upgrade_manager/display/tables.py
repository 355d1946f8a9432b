"""The view as tables for people, on a terminal or as plain text."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from upgrade_manager.api.timestamps import format_duration, seconds_between
from upgrade_manager.display.model import PhaseState, PlanState

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from rich.console import RenderableType
    from rich.spinner import Spinner

    from upgrade_manager.display.model import BlockerRow, NodeRow, View

#: Nodes with a row on a display that is redrawn, and on a short one; the others are counted by state.
NODE_ROWS, FEW_NODE_ROWS = 12, 3
#: Characters of the progress bar.
BAR = 30

_MARKS = {
    PhaseState.PENDING: Text("·", style="dim"),
    PhaseState.ACTIVE: Text("▶", style="cyan"),
    PhaseState.DONE: Text("✓", style="green"),
    PhaseState.FAILED: Text("✗", style="bold red"),
}
_STATES = {
    PlanState.PENDING: "bold yellow",
    PlanState.RUNNING: "bold cyan",
    PlanState.SUCCEEDED: "bold green",
    PlanState.FAILED: "bold red",
    PlanState.BLOCKED: "bold yellow",
}
_NOT_ACCEPTED = "The manager has not accepted the plan yet. Check its Pods and logs if this lasts"
#: States in which a node waits for other nodes.
_RESTING = frozenset({"ImagePreloaded", "PostDrained", "SingleNodeUpgraded", "ImageCleaned"})


def display(
    view: View,
    *,
    spinner: Spinner | None = None,
    node_rows: int | None = None,
    notice: str = "",
    is_short: bool = False,
) -> Group:
    """Draw a view.

    A display that is redrawn passes a spinner for the current phase, which turns from one view to the next, and limits
    the rows of nodes. A notice stands below all. A short display leaves out phases that are done or pending.
    """
    parts: list[RenderableType] = [_header(view), Text(), _phases(view, spinner, is_short=is_short)]
    if view.nodes:
        parts += [Text(), _nodes(view, FEW_NODE_ROWS if is_short else node_rows)]
    if view.blockers:
        parts += [Text(), Text("BLOCKERS", style="bold"), *_blockers(view)]
    if view.warnings:
        parts += [Text(), _warnings(view)]
    if notice:
        parts += [Text(), Text(notice, style="bold yellow")]
    return Group(*parts)


def _header(view: View) -> Table:
    table = _table("", "")
    table.add_row(Text("UpgradePlan", style="bold"), Text.assemble((view.plan, "bold"), "  ", _state(view)))
    for label, text, style in _facts(view):
        table.add_row(Text(label, style="bold"), Text(text, style=style))
    return table


def _state(view: View) -> Text:
    additions = [text for is_so, text in ((view.deleting, "deleting"), (view.cleaning_up, "cleaning up")) if is_so]
    return Text(", ".join([view.state, *additions]), style=_STATES[view.state])


def _facts(view: View) -> Iterator[tuple[str, str, str]]:
    """Yield label, text and style of the rows below the name."""
    yield "upgrade", view.route, ""
    if view.state is PlanState.RUNNING:
        yield "phase", view.phase, ""
    if view.started is not None:
        yield "started", f"{_moment(view.started)}, {format_duration(view.elapsed_seconds)} elapsed", ""
    if view.ended is not None:
        yield "ended", _moment(view.ended), ""
    if view.estimated_completion is not None:
        yield "expected end", _expectation(view.estimated_completion, view.now), ""
    yield "progress", bar(view.progress), ""
    waiting = _NOT_ACCEPTED if view.state is PlanState.PENDING else view.waiting
    texts = (("now", waiting, ""), ("error", view.last_error, "red"), ("cause", view.cause, "red"))
    yield from ((label, text, style) for label, text, style in texts if text)


def bar(ratio: float) -> str:
    """Return a bar that is also readable without colours; it is full only at the end."""
    done = int(ratio * BAR)
    return f"{'━' * done}{'─' * (BAR - done)} {int(ratio * 100)} %"


def _expectation(moment: datetime, now: datetime) -> str:
    if moment < now:
        return f"{_moment(moment)}, {format_duration(seconds_between(moment, now))} overdue"
    return f"{_moment(moment)}, in {format_duration(seconds_between(now, moment))}"


def _phases(view: View, spinner: Spinner | None, *, is_short: bool) -> Table:
    table = _table("", "PHASE", "DURATION")
    for row in view.phases:
        if is_short and row.state in {PhaseState.DONE, PhaseState.PENDING}:
            continue
        seconds = "" if row.seconds is None else format_duration(row.seconds)
        mark = spinner if spinner is not None and row.state is PhaseState.ACTIVE else _MARKS[row.state]
        style = {PhaseState.ACTIVE: "bold cyan", PhaseState.PENDING: "dim"}.get(row.state, "")
        table.add_row(mark, Text(row.name, style=style), seconds)
    table.columns[2].justify = "right"
    return table


def _nodes(view: View, limit: int | None) -> Table:
    table = _table("NODE", "STATE", "SINCE", "MESSAGE")
    rows, others = select(view.nodes, limit)
    for row in rows:
        style = "red" if row.state.endswith("Failed") else "green" if row.state.endswith("ed") else "cyan"
        message = ": ".join(filter(None, (row.reason, row.message)))
        table.add_row(Text(row.name), Text(row.state, style=style), _since(row.since, view.now), Text(message))
    if others:
        table.add_row(Text("others", style="dim"), "", "", Text(others, style="dim"))
    return table


def select(nodes: Sequence[NodeRow], limit: int | None) -> tuple[Sequence[NodeRow], str]:
    """Select the nodes with a row, those in progress first, and count the others by state."""
    if limit is None or len(nodes) <= limit:
        return nodes, ""
    by_progress = sorted(nodes, key=lambda row: row.state in _RESTING)
    counts = Counter(row.state for row in by_progress[limit:])
    return by_progress[:limit], ", ".join(f"{count} {state}" for state, count in counts.most_common())


def _blockers(view: View) -> Iterator[RenderableType]:
    for row in view.blockers:
        since = f"since {_since(row.since, view.now)}" if row.since else ""
        head = "  ".join(filter(None, (row.reason, _object(row), since, row.node and f"node {row.node}")))
        yield Text(head, style="yellow")
        yield from (Padding(Text(text), (0, 0, 0, 2)) for text in (row.message, row.remedy) if text)


def _object(row: BlockerRow) -> str:
    return f"{row.kind} {'/'.join(filter(None, (row.namespace, row.name)))}".strip()


def _warnings(view: View) -> Table:
    table = _table("LAST WARNINGS", "REASON", "MESSAGE")
    for row in view.warnings:
        times = f" (x{row.count})" if row.count > 1 else ""
        table.add_row(_since(row.time, view.now), Text(row.reason, style="yellow"), Text(row.message + times))
    return table


def _table(*headers: str) -> Table:
    table = Table(box=None, show_header=any(headers), header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for header in headers:
        table.add_column(header, overflow="fold")
    return table


def _moment(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def _since(moment: datetime | None, now: datetime) -> str:
    """Return the time of day, in UTC, and how long ago that was."""
    return f"{moment:%H:%M:%S}, {format_duration(seconds_between(moment, now))}" if moment else ""
