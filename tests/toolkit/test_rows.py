"""The table of rows and the toolkit: each row has an executor, and each executor a row."""

from __future__ import annotations

from upgrade_manager.release.migrations import generic
from upgrade_manager.release.migrations.pairs import PAIRS
from upgrade_manager.release.migrations.row import Row
from upgrade_manager.toolkit.charts.rancher_values import CHANGES
from upgrade_manager.toolkit.run.catalogue import COMMANDS, steps_of


def _table() -> list[Row]:
    return [*generic.ROWS, *(row for pair in PAIRS for row in pair.rows)]


def _acting() -> set[str]:
    steps = [step for command in COMMANDS for step in steps_of(command)]
    return {step.row.id for step in steps if step.row is not None and step.act is not None}


def test_each_row_has_an_executor_and_each_executor_a_row() -> None:
    assert _acting() | {change.row.id for change in CHANGES} == {row.id for row in _table()}


def test_checks_belong_to_rows_of_the_table() -> None:
    checked = {step.row.id for command in COMMANDS for step in steps_of(command) if step.row is not None}
    assert checked <= {row.id for row in _table()}
