"""The waits for closed rows of the gate; nodes/gate.py has the rows, and phase.py calls it while a row is closed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.blockers.remedy import steps
from upgrade_manager.blockers.wait import (
    AmbiguousMachineWait,
    ChangedClusterWait,
    TargetNodeWait,
    UnavailableNodeWait,
    UncordonedNodeWait,
)
from upgrade_manager.nodes.gate import GateRow
from upgrade_manager.pipeline.node_upgrade.waits import first_seen

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from upgrade_manager.blockers.wait import KnownWait
    from upgrade_manager.nodes.gate import Closed
    from upgrade_manager.pipeline.context import ReconcileContext

_WAITS: Mapping[GateRow, type[KnownWait]] = {
    GateRow.RANCHER: ChangedClusterWait,
    GateRow.MACHINE: AmbiguousMachineWait,
    GateRow.OTHER_NODE: UnavailableNodeWait,
    GateRow.CORDON: UncordonedNodeWait,
    GateRow.TARGETS: TargetNodeWait,
}


def gate_waits(ctx: ReconcileContext, closed: Mapping[str, Closed], *, rancher: Closed | None) -> Iterator[KnownWait]:
    """Yield a wait for each closed row, by object; a set-back Cluster waits also while no node asks for a step."""
    seen = set()
    for node, row in [*([("", rancher)] if rancher else []), *sorted(closed.items())]:
        kind = _WAITS[row.row]
        if row.is_passing or (kind, row.name) in seen:
            continue
        seen.add((kind, row.name))
        yield kind(
            namespace=row.namespace,
            name=row.name,
            node="" if row.row is GateRow.RANCHER else node,
            since=first_seen(ctx, kind, row.name),
            detail=row.why,
            remedy=steps(*row.ways_out),
        )
