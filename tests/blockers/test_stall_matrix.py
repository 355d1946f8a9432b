"""Each component hangs at each moment, or an object is wrong: the plan names it in time, and the upgrade succeeds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.managers import stall_matrix
from tests.support.managers.stall_matrix import CELLS, Cell
from upgrade_manager.api.phases import SUCCEEDED

#: In the default tier. The full one has those of the first and of the last moment of each component, too.
FEW = {("scheduler", "ImagePreloading"), ("kubelet of a node", "NodeUpgrading")}


def _mark(cell: Cell) -> list[pytest.MarkDecorator]:
    if (cell.component, cell.moment) in FEW:
        return []
    cells = [one for one in CELLS if one.component == cell.component]
    return [pytest.mark.full if cell in {cells[0], cells[-1]} else pytest.mark.exhaustive]


PARAMETERS = [pytest.param(cell, id=cell.id, marks=_mark(cell)) for cell in CELLS]
REGENERATE = "if that is meant: .venv/bin/python -m tests.support.managers.stall_matrix"


@pytest.mark.rule(
    "blockers: a component that hangs in any phase is named in time, and nothing else is",
    "blockers: a VM that does not leave its node is named with its migration and a command",
    "blockers: a Rancher that does nothing is named with its Deployment or its conditions",
    "blockers: an import without progress is named with its importer's message",
)
@pytest.mark.parametrize("cell", PARAMETERS)
async def test_what_holds_the_upgrade_up_is_named_in_time(cell: Cell) -> None:
    outcome = await stall_matrix.run(cell)
    assert stall_matrix.faults(cell, outcome) == []
    assert outcome.row(cell) in stall_matrix.DOCUMENT.read_text().splitlines(), REGENERATE


@pytest.mark.full
@pytest.mark.parametrize("seed", [1, 3, 4])
async def test_cleanup_stalls_alike_whichever_node_is_first(seed: int) -> None:
    (cell,) = (one for one in CELLS if (one.component, one.moment) == ("kubelet of a node", "CleaningUp"))
    outcome = await stall_matrix.run(cell, seed=seed)
    assert [(one.reason, one.kind) for one in outcome.seen] == [(cell.reason, cell.kind)]
    assert outcome.end == SUCCEEDED


def test_row_of_another_cell_that_was_not_run_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    new = replace(stall_matrix.cell_of("CDI"), component="another new component")
    monkeypatch.setattr(stall_matrix, "CELLS", (new, *CELLS))
    assert stall_matrix.text("a component that has no cell") == stall_matrix.DOCUMENT.read_text()


@pytest.mark.full
@pytest.mark.rule("blockers: a Rancher that does nothing is named with its Deployment or its conditions")
async def test_rancher_has_its_time_after_a_drain_that_was_held_up() -> None:
    cell = stall_matrix.cell_of("PodDisruptionBudget without disruptions")
    assert stall_matrix.faults(cell, await stall_matrix.run(cell, linger=1200)) == []


def test_document_has_a_row_for_each_cell() -> None:
    lines = stall_matrix.DOCUMENT.read_text().splitlines()
    rows = [line.split(" | ")[:2] for line in lines if line.startswith("| ")][1:]
    assert rows == [[f"| {cell.component}", cell.moment] for cell in CELLS], REGENERATE
