"""The upgrade as lines of text, for where there is no terminal: one line for everything that became different."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.demo.view import Mark

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hack.demo.view import NodeRow, PhaseRow, View

#: Events that say what a phase's own line says already.
_TOLD_BY_PHASES = frozenset({"PhaseTransition", "PhaseCompleted", "UpgradeSucceeded", "UpgradeFailed"})


def changes(before: View | None, after: View) -> Iterator[str]:
    """Tell what `after` has that `before` had not; nothing twice, and in the order in which it happened."""
    yield from _phases(before.phases if before else (), after.phases)
    yield from _nodes(before.nodes if before else (), after.nodes)
    if after.waiting and (before is None or before.waiting != after.waiting):
        yield f"now: {after.waiting}"
    if after.trouble and (before is None or before.trouble != after.trouble):
        yield f"trouble: {after.trouble}"
    known = {(event.reason, event.message, event.count) for event in before.events} if before else set()
    for event in after.events:
        if event.reason not in _TOLD_BY_PHASES and (event.reason, event.message, event.count) not in known:
            yield f"event: {event.type} {event.reason}: {event.message}"


def _phases(before: tuple[PhaseRow, ...], after: tuple[PhaseRow, ...]) -> Iterator[str]:
    marks = {row.name: row.mark for row in before}
    for row in after:
        mark = marks.get(row.name, Mark.PENDING)
        if row.mark is mark:
            continue
        if mark is Mark.PENDING:
            yield f"phase {row.name}: started"
        if row.mark is not Mark.ACTIVE:
            yield f"phase {row.name}: {row.mark} after {row.seconds or 0.0:.0f} s"


def _nodes(before: tuple[NodeRow, ...], after: tuple[NodeRow, ...]) -> Iterator[str]:
    known = {row.name: row for row in before}
    for row in after:
        old = known.get(row.name)
        if old is None or (old.state, old.note) != (row.state, row.note):
            yield f"node {row.name}: {row.state}{f' ({row.note})' if row.note else ''}"
