"""The waits for closed rows of the gate; nodes/gate.py has the rows, and report.py calls it while a row is closed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from upgrade_manager.blockers.known_wait import (
    AmbiguousMachineWait,
    ChangedClusterWait,
    TargetNodeWait,
    UnavailableNodeWait,
    UncordonedNodeWait,
)
from upgrade_manager.nodes.gate import GateRow, down, is_down_before
from upgrade_manager.pipeline.blocker_report import first_seen
from upgrade_manager.pipeline.holders import WAITS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from upgrade_manager.blockers.known_wait import KnownWait
    from upgrade_manager.nodes.gate import Closed
    from upgrade_manager.nodes.model import Decided, NodeView
    from upgrade_manager.pipeline.context import ReconcileContext

_WAITS: Mapping[GateRow, type[KnownWait]] = {
    GateRow.RANCHER: ChangedClusterWait,
    GateRow.MACHINE: AmbiguousMachineWait,
    GateRow.OTHER_NODE: UnavailableNodeWait,
    GateRow.CORDON: UncordonedNodeWait,
    GateRow.TARGETS: TargetNodeWait,
}


def _of_machine(node: str, row: Closed, view: NodeView | None) -> tuple[str, Closed]:
    """Return the row of the Machine's own node in place of that of a holder, so that the Machine is named once."""
    if view is None or row.row is not GateRow.HOLDER:
        return node, row
    why, ways_out = view.machine_problem, view.machine_ways_out
    return view.name, replace(row, row=GateRow.MACHINE, kind="", why=why, ways_out=ways_out)


def gate_waits(
    ctx: ReconcileContext,
    closed: Mapping[str, Closed],
    unfinished: Collection[Decided],
    *,
    rancher: Closed | None,
    missing: Collection[str],
) -> Iterator[KnownWait]:
    """Yield a wait for each closed row, by object.

    A Cluster that was set back waits also while no node asks for a step, and so does a node that went down before its
    turn. The recorded nodes that are `missing` have a wait of their own (waits.py).
    """
    pairs = (pair for pair in unfinished if is_down_before(*pair))
    before = [(view.name, down(view.name, view.ready_since)) for view, _ in pairs]
    own = {view.machine: view for view, _ in unfinished if view.machine_problem}
    rows = [_of_machine(node, row, own.get(row.name)) for node, row in sorted(closed.items())]
    seen = set()
    for node, row in [*([("", rancher)] if rancher else []), *rows, *before]:
        has_wait = row.row is GateRow.OTHER_NODE and row.name in missing
        if row.is_passing or has_wait:
            continue
        kind = WAITS[row.kind] if row.kind else _WAITS[row.row]
        if (kind, row.name) in seen:
            continue
        seen.add((kind, row.name))
        yield kind(
            namespace=row.namespace,
            name=row.name,
            node="" if row.row is GateRow.RANCHER else node,
            since=first_seen(ctx, kind, row.name),
            detail=row.why,
            remedies=row.ways_out,
        )
