"""The table of rows, the toolkit and the manager: each row has its executor, and each executor a row."""

from __future__ import annotations

from upgrade_manager.api.keys import ToolkitKind
from upgrade_manager.pipeline import host_changes
from upgrade_manager.pipeline.settings.overrides import OVERRIDES
from upgrade_manager.release.migrations import generic
from upgrade_manager.release.migrations.pairs import PAIRS
from upgrade_manager.release.migrations.row import Executor, Place, Row
from upgrade_manager.toolkit.charts.rancher_values import CHANGES
from upgrade_manager.toolkit.run.catalogue import COMMANDS, steps_of


def _table() -> list[Row]:
    return [*generic.ROWS, *(row for pair in PAIRS for row in pair.rows)]


def _acting() -> set[str]:
    steps = [step for command in COMMANDS for step in steps_of(command)]
    return {step.row.id for step in steps if step.row is not None and step.act is not None}


def _of(executor: Executor) -> set[str]:
    """Return the rows that it carries out with the toolkit of this project."""
    return {row.id for row in _table() if row.executor(ToolkitKind.OWN) is executor}


def test_each_row_of_a_job_has_a_step_and_each_step_a_row() -> None:
    assert _acting() | {change.row.id for change in CHANGES} == _of(Executor.JOB)


def test_each_row_of_the_manager_has_what_carries_it_out() -> None:
    overrides = {one.row.id for one in OVERRIDES if one.row is not None}
    assert overrides | {change.row.id for change in host_changes.CHANGES} == _of(Executor.MANAGER)


def test_place_of_a_row_is_that_of_its_executor() -> None:
    around = {row.id for row in _table() if row.place is Place.AROUND_NODES}
    assert around | {host_changes.HOLD.row.id} == _of(Executor.MANAGER)


def test_checks_belong_to_rows_of_the_table() -> None:
    checked = {step.row.id for command in COMMANDS for step in steps_of(command) if step.row is not None}
    assert checked <= {row.id for row in _table()}
