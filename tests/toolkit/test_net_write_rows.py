"""The listings of net writes, row by row: each line has a cause, and each row of the pair a line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.toolkit import net_write_goldens as goldens
from upgrade_manager.api.phases import PhaseName
from upgrade_manager.release.migrations.pairs import rows_between
from upgrade_manager.release.migrations.v1_7_to_v1_8 import NIC_NAMES

ROWS = {row.id for row in rows_between("v1.7.1", "v1.8.0")}
#: Rows of the pair without a write, with the reason.
SILENT = {NIC_NAMES.id: "it reads what another row has written, and ends the step if GRUB does not show it"}
DOCUMENT = Path(__file__).parents[2] / "docs/toolkit.md"


def causes(name: str) -> dict[str, str]:
    """Return the first column of each line of a listing."""
    return {line: line.partition("  ")[0] for line in goldens.kept(name) if not line.startswith("#")}


def is_known(cause: str, steps: set[str]) -> bool:
    """Report whether a cause is a row, a step that docs/toolkit.md describes, or a phase."""
    kind, _, name = cause.partition(" ")
    return cause in ROWS or (kind == "step" and name in steps) or (kind == "phase" and name in set(PhaseName))


@pytest.mark.parametrize("name", goldens.names())
def test_each_line_has_a_row_or_a_documented_step(name: str) -> None:
    cells = re.findall(r"^\| ([a-z0-9, -]+) \|", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
    steps = {step for cell in cells for step in cell.split(", ")}
    found = causes(name)
    assert found
    assert {line: cause for line, cause in found.items() if not is_known(cause, steps)} == {}


def test_each_row_of_the_pair_has_a_line() -> None:
    shown = {cause for name in goldens.names() for cause in causes(name).values()}
    assert ROWS - shown == set(SILENT)
