"""The upgrade as lines of text, for where there is no terminal: one line for everything that became different."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.demo.view import Mark

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hack.demo.view import NodeRow, PhaseRow, View

#: Events that say what a phase's own line says already.
_TOLD_BY_PHASES = frozenset({"PhaseTransition", "PhaseCompleted", "UpgradeSucceeded", "UpgradeFailed"})
#: Endings of node states by which a phase ends: they are told before its end, and others after its start.
_ENDINGS = ("Preloaded", "PostDrained", "Upgraded", "Cleaned", "Failed")


def changes(before: View | None, after: View) -> Iterator[str]:
    """Tell what `after` has that `before` had not; nothing twice, and in the order in which it happened."""
    yield from _progress(before, after)
    if after.waiting and (before is None or before.waiting != after.waiting):
        yield f"now: {after.waiting}"
    if after.trouble and (before is None or before.trouble != after.trouble):
        yield f"trouble: {after.trouble}"
    yield from _events(before, after)


def _events(before: View | None, after: View) -> Iterator[str]:
    """What neither a phase nor the trouble tells; an event that happens again is the same event."""
    known = {(event.reason, event.message) for event in before.events} if before else set()
    troubles = {after.trouble, before.trouble if before else ""}
    for event in after.events:
        is_told = event.reason in _TOLD_BY_PHASES or event.message in troubles
        if not is_told and (event.reason, event.message) not in known:
            yield f"event: {event.type} {event.reason}: {event.message}"


def _progress(before: View | None, after: View) -> Iterator[str]:
    """Phases and nodes; one look can bring a node's last step, the end of its phase and the start of the next."""
    nodes = list(_nodes(before.nodes if before else (), after.nodes))
    for line, is_end in _phases(before.phases if before else (), after.phases):
        if is_end:
            yield from (told for told, is_last in nodes if is_last)
            nodes = [(told, is_last) for told, is_last in nodes if not is_last]
        yield line
    yield from (told for told, _ in nodes)


def _phases(before: tuple[PhaseRow, ...], after: tuple[PhaseRow, ...]) -> Iterator[tuple[str, bool]]:
    """Each line, and whether it tells an end."""
    marks = {row.name: row.mark for row in before}
    for row in after:
        mark = marks.get(row.name, Mark.PENDING)
        if row.mark is mark:
            continue
        if mark is Mark.PENDING:
            yield f"phase {row.name}: started", False
        if row.mark is not Mark.ACTIVE:
            yield f"phase {row.name}: {row.mark} after {row.seconds or 0.0:.0f} s", True


def _nodes(before: tuple[NodeRow, ...], after: tuple[NodeRow, ...]) -> Iterator[tuple[str, bool]]:
    """Each line, and whether it tells a node's last step in a phase."""
    known = {row.name: row for row in before}
    for row in after:
        old = known.get(row.name)
        if old is None or (old.state, old.note) != (row.state, row.note):
            note = f" ({row.note})" if row.note else ""
            yield f"node {row.name}: {row.state}{note}", row.state.endswith(_ENDINGS)
