"""The waits for closed rows of the gate: each object once."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast
from unittest.mock import Mock

import pytest

from upgrade_manager.blockers.known_wait import AmbiguousMachineWait, HoldingMachineWait
from upgrade_manager.nodes.gate import Closed, GateRow
from upgrade_manager.nodes.model import Decision, NodeView
from upgrade_manager.pipeline.node_upgrade.gate_waits import gate_waits

if TYPE_CHECKING:
    from tests.support.cluster.harvester import Harvester


def closed(row: GateRow, name: str) -> Closed:
    kind = "Machine" if row is GateRow.HOLDER else ""
    return Closed(row=row, kind=kind, namespace="fleet-local", name=name, why="it is not Running", ways_out=())


@pytest.mark.rule("blockers: a Machine that is being deleted is one blocker, of its node")
@pytest.mark.parametrize(
    ("rows", "problem", "found"),
    [
        pytest.param({"n1": GateRow.HOLDER}, "it is being deleted", (AmbiguousMachineWait, "n2"), id="another's turn"),
        pytest.param(
            {"n1": GateRow.HOLDER, "n2": GateRow.MACHINE},
            "it is being deleted",
            (AmbiguousMachineWait, "n2"),
            id="both",
        ),
        pytest.param({"n1": GateRow.HOLDER}, "", (HoldingMachineWait, "n1"), id="it is not being deleted"),
    ],
)
async def test_machine_is_named_once(
    cluster: Harvester, rows: dict[str, GateRow], problem: str, found: tuple[type, str]
) -> None:
    ctx = cluster.context(await cluster.plan())
    view = Mock(machine="m-n2", machine_problem=problem, machine_ways_out=(), ready_since=None)
    view.name = "n2"
    decided = [(cast("NodeView", view), Mock(spec=Decision, holds=True, effects=(), state=None))]
    waits = gate_waits(
        ctx, {node: closed(row, "m-n2") for node, row in rows.items()}, decided, rancher=None, missing=()
    )
    assert [(type(wait), wait.name, wait.node) for wait in waits] == [(found[0], "m-n2", found[1])]
