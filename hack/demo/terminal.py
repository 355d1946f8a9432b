"""The upgrade as a display on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from hack.demo.view import Mark, select

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.spinner import Spinner

    from hack.demo.view import View

_MARKS = {Mark.PENDING: ("·", "dim"), Mark.DONE: ("✓", "green"), Mark.FAILED: ("✗", "bold red")}
_OUTCOMES = {"Succeeded": "bold green", "Failed": "bold red", "Blocked": "bold yellow"}


def display(view: View, *, spinner: Spinner) -> Group:
    """Draw a view; the caller keeps the spinner, so that it turns from one view to the next."""
    parts: list[RenderableType] = [_header(view), Text(), _phases(view, spinner)]
    if view.nodes:
        parts += [Text(), _nodes(view)]
    if view.waiting:
        parts += [Text(), Text.assemble(("now        ", "bold"), view.waiting)]
    if view.last_error:
        parts += [Text(), Text.assemble(("error      ", "bold red"), view.last_error)]
    if view.cause:
        parts += [Text(), Text.assemble(("cause      ", "bold red"), view.cause)]
    if view.events:
        parts += [Text(), _events(view)]
    return Group(*parts)


def _header(view: View) -> Text:
    header = Text.assemble(("UpgradePlan ", "bold"), (view.plan, "bold cyan"), "   ", view.route, "   ")
    header.append(f"{view.elapsed:.0f} s", style="bold")
    if view.outcome:
        header.append(f"   {view.outcome}", style=_OUTCOMES.get(view.outcome, "bold"))
    return header


def _phases(view: View, spinner: Spinner) -> Table:
    table = _table()
    for row in view.phases:
        seconds = "" if row.seconds is None else f"{row.seconds:.0f} s"
        if row.mark is Mark.ACTIVE:
            table.add_row(spinner, Text(row.name, style="bold cyan"), seconds)
        else:
            sign, style = _MARKS[row.mark]
            table.add_row(
                Text(sign, style=style), Text(row.name, style="dim" if row.mark is Mark.PENDING else ""), seconds
            )
    table.columns[2].justify = "right"
    return table


def _nodes(view: View) -> Table:
    table = _table()
    rows, others = select(view.nodes)
    for row in rows:
        style = "red" if row.state.endswith("Failed") else "green" if row.state.endswith("ed") else "cyan"
        table.add_row("", row.name, Text(row.state, style=style), Text(row.message, style="dim"))
    if others:
        table.add_row("", "others", others)
    return table


def _events(view: View) -> Table:
    table = _table()
    for event in view.events:
        times = f" (x{event.count})" if event.count > 1 else ""
        style = "yellow" if event.type == "Warning" else "dim"
        table.add_row("", event.time, event.reason, event.message + times, style=style)
    return table


def _table() -> Table:
    return Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
