"""The upgrade as lines of text: one line for each change.

screen.py writes them where the output is not a terminal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.timestamps import format_duration
from upgrade_manager.display.model import PhaseState, PlanState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from upgrade_manager.display.model import NodeRow, PhaseRow, View

#: Events that repeat a phase's line.
_PHASE_EVENTS = frozenset({"PhaseTransition", "PhaseCompleted", "UpgradeSucceeded", "UpgradeFailed"})
#: Suffixes of the node states that end a phase; their lines come before the phase's.
_FINAL_STATES = ("Preloaded", "PostDrained", "Upgraded", "Cleaned", "Failed")


def changes(before: View | None, after: View) -> Iterator[str]:
    """Yield a line for each difference, in the order of the upgrade."""
    yield from _leader(before, after)
    if before is not None and after.attempt > before.attempt:
        yield f"attempt {after.attempt}: started"
    yield from _progress(before, after)
    if after.waiting and (before is None or before.waiting != after.waiting):
        yield f"now: {after.waiting}"
    if after.last_error and (before is None or before.last_error != after.last_error):
        yield f"error: {after.last_error}"
    yield from _events(before, after)
    yield from _plan(before, after)


def _leader(before: View | None, after: View) -> Iterator[str]:
    """Yield that no manager leads, or which one leads again."""
    is_known = before is not None and before.leader.state is after.leader.state
    if after.leader.message and not is_known:
        yield " ".join([f"leader: {after.leader.message}", *after.leader.commands[:1]])
    elif before is not None and before.leader.is_missing and not after.leader.is_missing:
        yield f"leader: {after.leader.holder or 'unknown'}"


def _plan(before: View | None, after: View) -> Iterator[str]:
    """Yield the state of the plan, its end with the cause, and its deletion."""
    if after.state.is_end:
        if before is None or before.state is not after.state:
            word = after.status if after.state is PlanState.FAILED else after.state
            yield f"plan {after.plan}: {': '.join(filter(None, (word, after.cause)))}"
    elif not after.deleting and (before is None or before.status != after.status):
        yield f"plan {after.plan}: {after.status}"
    if after.deleting and (before is None or not before.deleting):
        yield f"plan {after.plan}: deleting"


def _events(before: View | None, after: View) -> Iterator[str]:
    """Yield new events, except those that repeat a phase's line or the last error."""
    known = {(event.reason, event.message) for event in before.events} if before else set()
    errors = {after.last_error, before.last_error if before else ""}
    for event in after.events:
        is_repeated = event.reason in _PHASE_EVENTS or event.message in errors
        if not is_repeated and (event.reason, event.message) not in known:
            yield f"event: {event.type} {event.reason}: {event.message}"


def _progress(before: View | None, after: View) -> Iterator[str]:
    """Yield phases and nodes; one view can bring a node's final state, its phase's end and the next phase's start."""
    nodes = list(_nodes(before.nodes if before else (), after.nodes))
    for line, is_end in _phases(before.phases if before else (), after.phases):
        if is_end:
            yield from (node for node, is_final in nodes if is_final)
            nodes = [(node, is_final) for node, is_final in nodes if not is_final]
        yield line
    yield from (node for node, _ in nodes)


def _phases(before: tuple[PhaseRow, ...], after: tuple[PhaseRow, ...]) -> Iterator[tuple[str, bool]]:
    """Yield each line, and whether the phase ends."""
    marks = {row.name: row.state for row in before}
    for row in after:
        mark = marks.get(row.name, PhaseState.PENDING)
        if row.state in {mark, PhaseState.SKIPPED}:
            continue
        if mark is PhaseState.PENDING:
            yield f"phase {row.name}: started", False
        if row.state is not PhaseState.ACTIVE:
            yield f"phase {row.name}: {row.state} after {format_duration(row.seconds or 0.0)}", True


def _nodes(before: tuple[NodeRow, ...], after: tuple[NodeRow, ...]) -> Iterator[tuple[str, bool]]:
    """Yield each line, and whether the state ends a phase."""
    known = {row.name: row for row in before}
    for row in after:
        old = known.get(row.name)
        if old is None or (old.state, old.message) != (row.state, row.message):
            message = f" ({row.message})" if row.message else ""
            yield f"node {row.name}: {row.state}{message}", row.state.endswith(_FINAL_STATES)
