"""The steps after a failure, as the status holds them."""

from __future__ import annotations

import pytest

from upgrade_manager.api.next_steps import MAX_COMMAND, MAX_STEPS, step_entries
from upgrade_manager.api.remedy import Remedy
from upgrade_manager.api.text import MESSAGE_LIMIT


@pytest.mark.parametrize(
    ("step", "entry"),
    [
        pytest.param(Remedy("a\nb", command="x\ty"), {"text": "a b", "command": "x y"}, id="one line"),
        pytest.param(Remedy("a", command="y" * MAX_COMMAND), {"text": "a", "command": "y" * MAX_COMMAND}, id="longest"),
        pytest.param(Remedy("a", command="y" * (MAX_COMMAND + 1)), {"text": "a"}, id="a command is never cut"),
        pytest.param(Remedy("a" * 9999), {"text": "a" * (MESSAGE_LIMIT - 1) + "…"}, id="a long text"),
    ],
)
def test_steps_are_bounded(step: Remedy, entry: dict[str, str]) -> None:
    assert step_entries([step]) == [entry]
    assert step_entries([step] * (MAX_STEPS + 1)) == [entry] * MAX_STEPS
