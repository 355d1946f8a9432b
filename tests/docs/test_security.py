"""The threat model in docs/security.md: every row is complete, and names tests that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs/security.md"
#: The columns of a row of the threat model.
COLUMNS = ("actor", "way", "limit", "record", "test")
_TEST = re.compile(r"\[(\w+)\]\(\.\./(tests/[\w/]+\.py)\)")


def rows() -> list[tuple[str, ...]]:
    """Return the cells of the tables whose head is COLUMNS."""
    found: list[tuple[str, ...]] = []
    is_inside = False
    for line in DOCUMENT.read_text(encoding="utf-8").splitlines():
        cells = tuple(cell.strip() for cell in line.strip().strip("|").split("|")) if line.startswith("|") else ()
        if cells == COLUMNS:
            is_inside = True
        elif not cells:
            is_inside = False
        elif is_inside and not set(cells[0]) <= set("-:"):
            found.append(cells)
    return found


def functions(path: Path) -> set[str]:
    """Return the names of the functions in a test file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_the_model_has_rows_for_every_actor() -> None:
    assert {"stranger", "operator", "editor", "admin", "manager's token", "webhook's token"} <= {
        cells[0] for cells in rows()
    }


@pytest.mark.parametrize("cells", rows(), ids=lambda cells: f"{cells[0]}: {cells[1]}"[:60])
def test_row_is_complete_and_its_tests_exist(cells: tuple[str, ...]) -> None:
    assert len(cells) == len(COLUMNS)
    assert all(cells)
    named = _TEST.findall(cells[-1])
    assert named
    assert [name for name, path in named if name not in functions(ROOT / path)] == []
