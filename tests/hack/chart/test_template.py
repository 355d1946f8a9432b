"""Templates of the chart from manifests, by edits that each fit once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hack.chart.template import Edit, EditError, Template

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = """kind: A
metadata:
  labels:
    app.kubernetes.io/name: a
spec:
  one: 1
  two: 2
"""


def template(folder: Path, *edits: Edit, source: str = SOURCE, condition: str = "") -> str:
    (folder / "a.yaml").write_text(source)
    return Template(source="a.yaml", condition=condition, edits=edits).text(folder)


@pytest.mark.parametrize(
    ("edit", "source", "message"),
    [
        pytest.param(Edit("four", "4"), SOURCE, "a.yaml has 0 times, not once: 'four'", id="text without a match"),
        pytest.param(Edit("a", "b"), SOURCE, "times, not once: 'a'", id="text with several matches"),
        pytest.param(Edit("x", "y"), "x: '{{ y }}'", r"contains \{\{", id="source that Helm would evaluate"),
    ],
)
def test_edit_that_does_not_fit_is_refused(tmp_path: Path, edit: Edit, source: str, message: str) -> None:
    with pytest.raises(EditError, match=message):
        template(tmp_path, edit, source=source)
