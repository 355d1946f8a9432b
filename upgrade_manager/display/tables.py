"""The view as tables for people, on a terminal or as plain text."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from upgrade_manager.api.node_states import NodeState
from upgrade_manager.api.text import namespaced_name
from upgrade_manager.api.timestamps import format_duration, seconds_between
from upgrade_manager.display.model import PhaseState, PlanState
from upgrade_manager.display.remedies import remedy_lines
from upgrade_manager.display.unbroken import Unbroken

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from rich.console import RenderableType
    from rich.spinner import Spinner

    from upgrade_manager.display.model import BlockerRow, EventRow, NodeRow, View


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """The rows of each part that a display shows, for terminals of few lines; the others are counted. None is all."""

    nodes: int | None = None
    blockers: int | None = None
    #: Of the first blocker, if it is the only one that is shown, and next steps.
    remedies: int | None = None
    warnings: int | None = None
    #: With the list of phases, in place of the current phase alone.
    phases: bool = True
    #: With the facts that do not change.
    all_facts: bool = True
    #: The name, the state and the cause of a failure in place of the header.
    is_bare: bool = False
    #: With an empty line between two parts.
    is_spaced: bool = True


ALL = Rows()
_LOW = Rows(nodes=3, warnings=2, phases=False, all_facts=False)
_LEAST = replace(_LOW, warnings=0, blockers=1, nodes=0, is_spaced=False)
#: For a display that is redrawn: the first form that fits the terminal is shown, else the last one. Phases are left out
#: first, then nodes; of the remedies of the first blocker those that do not fit are counted.
FORMS = (
    Rows(nodes=12),
    Rows(nodes=12, phases=False),
    replace(_LOW, nodes=12),
    replace(_LOW, warnings=0),
    replace(_LOW, warnings=0, blockers=3),
    replace(_LOW, warnings=0, blockers=1, nodes=1, is_spaced=False),
    _LEAST,
    replace(_LEAST, is_bare=True),
    *(replace(_LEAST, is_bare=True, remedies=count) for count in range(8, 0, -1)),
)
#: Separates what a wait says from the nodes that are done.
_COUNT = re.compile(r"(.*?)(?: \((\d+ of \d+ nodes? done)\))?")
#: Stands for a blocker's message.
_SAID = "\0"
#: Characters of the progress bar.
BAR = 30

_MARKS = {
    PhaseState.PENDING: Text("·", style="dim"),
    PhaseState.ACTIVE: Text("▶", style="cyan"),
    PhaseState.DONE: Text("✓", style="green"),
    PhaseState.FAILED: Text("✗", style="bold red"),
    PhaseState.SKIPPED: Text("-", style="dim"),
}
_PHASE_STYLES = {PhaseState.ACTIVE: "bold cyan", PhaseState.PENDING: "dim", PhaseState.SKIPPED: "dim"}
_STATES = {
    PlanState.PENDING: "bold yellow",
    PlanState.RUNNING: "bold cyan",
    PlanState.SUCCEEDED: "bold green",
    PlanState.FAILED: "bold red",
}
#: The first cell of the row that counts the omitted entries.
_OTHERS = "others"
_NOT_ACCEPTED = "The manager has not accepted the plan yet. Check its Pods and logs if this lasts"
_WAITS, _PAUSED, _BUSY, _DONE, _FAILED = "", "yellow", "cyan", "green", "red"
#: The colours of the states of nodes.
NODE_STYLES: dict[str, str] = {
    NodeState.IMAGE_PRELOADING: _BUSY,
    NodeState.IMAGE_PRELOADED: _WAITS,
    NodeState.IMAGE_PRELOAD_FAILED: _FAILED,
    NodeState.UPGRADE_PAUSED: _PAUSED,
    NodeState.PRE_DRAINING: _BUSY,
    NodeState.SINGLE_NODE_UPGRADING: _BUSY,
    NodeState.PRE_DRAINED: _BUSY,
    NodeState.PRE_DRAIN_FAILED: _FAILED,
    NodeState.POST_DRAINING: _BUSY,
    NodeState.WAITING_REBOOT: _BUSY,
    NodeState.POST_DRAINED: _DONE,
    NodeState.POST_DRAIN_FAILED: _FAILED,
    NodeState.SINGLE_NODE_UPGRADED: _DONE,
    NodeState.SINGLE_NODE_UPGRADE_FAILED: _FAILED,
    NodeState.IMAGE_CLEANING: _BUSY,
    NodeState.IMAGE_CLEANED: _DONE,
    NodeState.IMAGE_CLEAN_FAILED: _FAILED,
}
#: States in which a node waits for other nodes.
_RESTING = {state for state, style in NODE_STYLES.items() if style in {_WAITS, _DONE}}


def display(view: View, *, rows: Rows = ALL, spinner: Spinner | None = None, notice: str = "") -> Group:
    """Draw a view.

    A display that is redrawn passes a spinner for the current phase, which turns from one view to the next. A notice
    stands below the header, where it is also seen on a terminal that is too low for the rest.
    """
    empty = [Text()] if rows.is_spaced else []
    notices = [Text(notice, style="bold yellow")] if notice else []
    parts = [one for part in _parts(view, rows, spinner) for one in (*empty, *part)]
    return Group(*_alarm(view), _header(view, rows), *notices, *parts)


def _alarm(view: View) -> Iterator[RenderableType]:
    """Yield that no manager leads, and commands on separate lines: nothing else is up to date then."""
    if view.leader.is_missing:
        yield Text(view.leader.message, style="bold red")
        yield from map(_line, view.leader.commands)


def _parts(view: View, rows: Rows, spinner: Spinner | None) -> Iterator[Iterable[RenderableType]]:
    """Yield what stands below the header: what is to be done comes first."""
    if view.next_steps:
        yield _next_steps(view, rows)
    if view.blockers:
        yield _blockers(view, rows)
    if view.nodes and rows.nodes != 0:
        yield [_nodes(view, rows)]
    if rows.phases:
        yield [_phases(view, spinner)]
        if view.attempt > 1 and rows.all_facts and not rows.is_bare:
            yield [_attempts(view)]
    warnings = [row for row in view.warnings if not _repeats(row, view)]
    if warnings and not rows.is_bare:
        yield [_warnings(warnings, rows.warnings, view.now) if rows.warnings != 0 else _warned(warnings)]


def _repeats(row: EventRow, view: View) -> bool:
    """Return True for the event of a blocker, whose message may have changed since, of the failure or a next step."""
    about = [one for one in view.blockers if one.reason == row.reason]
    texts = [text for one in about for text in (one.message, _object(one)) if text]
    texts += [one.text for one in view.next_steps if one.text]
    return row.message.startswith(tuple(texts)) or bool(view.cause and row.message.endswith(view.cause))


def _header(view: View, rows: Rows) -> Table:
    table = _table("", "")
    table.add_row(Text("UpgradePlan", style="bold"), Text.assemble((view.plan, "bold"), "  ", _state(view)))
    for label, text, style in _causes(view) if rows.is_bare else _facts(view, rows):
        table.add_row(Text(label, style="bold"), Text(text, style=style))
    return table


def _state(view: View) -> Text:
    return Text(", ".join([view.status, *view.remarks]), style=_STATES[view.state])


def _facts(view: View, rows: Rows) -> Iterator[tuple[str, str, str]]:
    """Yield label, text and style of the rows below the name."""
    yield "upgrade", view.route, ""
    if rows.all_facts:
        texts = (
            ("toolkit", view.toolkit_image),
            ("stuck VMs", view.on_migration_failure),
            ("checksums", view.checksums),
            ("created by", view.created_by),
        )
        yield from ((label, text, "") for label, text in texts if text)
        if not view.leader.is_missing and (leader := view.leader.message or view.leader.holder):
            yield "leader", leader, ""
    if view.state is PlanState.RUNNING and not rows.phases:
        yield "phase", view.phase, ""
    if view.started is not None:
        work = "of work" if view.attempt > 1 else "elapsed"
        yield "started", f"{_moment(view.started)}, {format_duration(view.elapsed_seconds)} {work}", ""
    if view.attempt > 1:
        yield "attempt", _attempt(view, rows), ""
    if view.ended is not None:
        yield "ended", _moment(view.ended), ""
    if view.estimated_completion is not None:
        yield "expected end", _expectation(view.estimated_completion, view.now), ""
    yield "progress", bar(view.progress), ""
    waiting = _besides(view, view.waiting) or (_NOT_ACCEPTED if view.state is PlanState.PENDING else "")
    states = (("now", waiting, ""), ("error", _besides(view, view.last_error), "red"))
    yield from ((label, text, style) for label, text, style in states if text)
    yield from _causes(view)


def _causes(view: View) -> Iterator[tuple[str, str, str]]:
    """Yield the cause of the end, without the steps that stand below."""
    cause = view.cause
    for one in view.next_steps:
        cause = cause.replace(f". Log: {one.command}", "") if one.command else cause
        todo = one.text.partition("; ")[2] or one.text
        if cause.lower().endswith(f". {todo.lower()}"):
            cause = cause[: -len(todo) - 2]
    if cause:
        yield "left to do" if view.state is PlanState.SUCCEEDED else "cause", cause, "red"


def _besides(view: View, text: str) -> str:
    """Return what a text says beside the blockers' messages, which are shown below with their remedies."""
    text, done = _COUNT.fullmatch(text).groups()  # type: ignore[union-attr]  # it matches each line
    for row in view.blockers:
        # Progressing has the counts of a blocker's message once.
        whole = (row.message, _COUNT.sub(r"\1", row.message))
        for said in filter(None, (*whole, row.message.removeprefix(f"{_object(row)}: "))):
            text = text.replace(said, _SAID)
    rest = "; ".join(clause for clause in text.split("; ") if _SAID not in clause)
    return f"{rest} ({done})" if rest and done else rest or done or ""


def _attempt(view: View, rows: Rows) -> str:
    """Return the number of the attempt, its begin, and where the one before it failed."""
    text = str(view.attempt)
    if view.attempt_began is not None:
        took = format_duration(seconds_between(view.attempt_began, view.ended or view.now))
        text += f", since {_moment(view.attempt_began)}, {took}"
    before = [row for row in view.attempts if row.phase and row.number < view.attempt]
    return f"{text}; {before[-1].number} failed in {before[-1].place}" if before and rows.all_facts else text


def bar(ratio: float) -> str:
    """Return a bar that is also readable without colours; it is full only at the end."""
    done = int(ratio * BAR)
    return f"{'━' * done}{'─' * (BAR - done)} {int(ratio * 100)} %"


def _expectation(moment: datetime, now: datetime) -> str:
    if moment < now:
        return f"{_moment(moment)}, {format_duration(seconds_between(moment, now))} overdue"
    return f"{_moment(moment)}, in {format_duration(seconds_between(now, moment))}"


def _phases(view: View, spinner: Spinner | None) -> Table:
    table = _table("", "PHASE", "DURATION")
    for row in view.phases:
        spent = str(row.state) if row.state is PhaseState.SKIPPED else ""
        seconds = spent if row.seconds is None else format_duration(row.seconds)
        mark = spinner if spinner is not None and row.state is PhaseState.ACTIVE else _MARKS[row.state]
        style = _PHASE_STYLES.get(row.state, "")
        table.add_row(mark, Text(row.name, style=style), seconds)
    table.columns[2].justify = "right"
    return table


def _attempts(view: View) -> Table:
    table = _table("ATTEMPT", "SINCE", "DURATION", "FAILED IN", "CAUSE")
    for row in view.attempts:
        ended = row.ended or view.ended or view.now
        seconds = format_duration(seconds_between(row.started, ended)) if row.started is not None else ""
        began = _moment(row.started) if row.started is not None else ""
        table.add_row(str(row.number), began, seconds, Text(row.place), Text(row.cause))
    return table


def _nodes(view: View, rows: Rows) -> Table:
    table = _table("NODE", "STATE", "SINCE", "MESSAGE")
    selected, others = select(view.nodes, rows.nodes)
    shown = {one.message for one in view.blockers[: rows.blockers]}
    for row in selected:
        message = ": ".join(filter(None, (row.reason, "" if row.message in shown else row.message)))
        table.add_row(
            Text(row.name), Text(row.state, style=state_style(row.state)), _since(row.since, view.now), Text(message)
        )
    if others:
        table.add_row(Text(_OTHERS, style="dim"), "", "", Text(others, style="dim"))
    return table


def state_style(state: str) -> str:
    """Return the colour of a node's state, also of a later release's; it is green only for nodes that are done."""
    return NODE_STYLES.get(state, _FAILED if state.endswith("Failed") else _BUSY)


def select(nodes: Sequence[NodeRow], limit: int | None) -> tuple[Sequence[NodeRow], str]:
    """Select the nodes with a row, those in progress first, and count the others by state."""
    if limit is None or len(nodes) <= limit:
        return nodes, ""
    by_progress = sorted(nodes, key=lambda row: row.state in _RESTING)
    return by_progress[:limit], _counts(row.state for row in by_progress[limit:])


def _counts(names: Iterable[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in Counter(names).most_common())


def _next_steps(view: View, rows: Rows) -> Iterator[RenderableType]:
    """Yield the steps as lines to copy."""
    yield Text("NEXT", style="bold")
    yield from map(_line, remedy_lines(view.next_steps[: rows.remedies]))
    if rows.remedies and (left := len(view.next_steps[rows.remedies :])):
        yield from _all_remedies(view, f"{left} steps; all steps")


def _blockers(view: View, rows: Rows) -> Iterator[RenderableType]:
    """Yield the blockers, each with its remedies as lines to copy."""
    yield Text("BLOCKERS", style="bold")
    for row in view.blockers[: rows.blockers]:
        since = f"since {_since(row.since, view.now)}" if row.since else ""
        # The message names them first; one of several objects is named by the command that shows its events.
        place = "" if row.name in " ".join([row.message, *(one.command for one in row.remedies)]) else _object(row)
        node = f"node {row.node}" if row.node and row.node not in row.message else ""
        yield Text("  ".join(filter(None, (row.reason, place, since, node))), style="yellow")
        if row.message:
            yield Text(row.message)
        yield from map(_line, remedy_lines(row.remedies[: rows.remedies]))
    if others := ", ".join(_others(view, rows)):
        yield from _all_remedies(view, f"{others}; all remedies")


def _all_remedies(view: View, others: str) -> Iterator[RenderableType]:
    yield Text(f"{_OTHERS}  {others}:", style="dim")
    yield _line(f"upgrade-manager remedies {view.plan}")


def _others(view: View, rows: Rows) -> Iterator[str]:
    """Yield the counts of remedies and blockers that are left out."""
    left = len(view.blockers[0].remedies[rows.remedies :]) if rows.remedies else 0
    if left:
        yield f"{left} of this one"
    if rows.blockers and (found := _counts(row.reason for row in view.blockers[rows.blockers :])):
        yield found


def _line(text: str) -> Unbroken:
    return Unbroken(text, style="dim" if text.startswith("#") else "bold")


def _object(row: BlockerRow) -> str:
    return f"{row.kind} {namespaced_name(row.namespace, row.name)}".strip()


def _warnings(found: Sequence[EventRow], limit: int | None, now: datetime) -> Table:
    table = _table("LAST WARNINGS", "REASON", "MESSAGE")
    first = 0 if limit is None else max(0, len(found) - limit)
    for row in found[first:]:
        times = f" (x{row.count})" if row.count > 1 else ""
        end = f"cleared at {row.cleared:%H:%M:%S}: " if row.cleared else ""
        style = "dim" if row.cleared else "yellow"
        table.add_row(_since(row.time, now), Text(row.reason, style=style), Text(f"{end}{row.message}{times}"))
    if others := _counts(row.reason for row in found[:first]):
        table.add_row(Text(_OTHERS, style="dim"), "", Text(others, style="dim"))
    return table


def _warned(found: Sequence[EventRow]) -> Text:
    return Text.assemble(("LAST WARNINGS", "bold"), f"  {_counts(row.reason for row in found)}")


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
