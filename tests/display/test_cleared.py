"""Warnings whose blockers are over."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from tests.support.managers.displayed import NOW, at, event, running_plan
from upgrade_manager.display.tables import display
from upgrade_manager.display.view import build

WARNING = "Pod default/shop-node-0 cannot be evicted from node-0: PDB default/shop needs 3 of 3 healthy Pods"
#: The kind and the name of the blocker's object, which the message may have elsewhere.
CLEARED = "PodDisruptionBudget default/shop: DrainFailing is cleared"


@pytest.mark.rule("status: a warning whose blocker has cleared is marked with the time")
@pytest.mark.parametrize(
    ("message", "second", "cleared"),
    [
        pytest.param(CLEARED, 70, True, id="cleared"),
        pytest.param(CLEARED, 10, False, id="back since"),
        pytest.param(CLEARED.replace("DrainFailing", "JobSlow"), 70, False, id="another reason"),
        pytest.param(CLEARED.replace("shop", "sho"), 70, False, id="a part of its name"),
        pytest.param(CLEARED.replace("default/shop", "db"), 70, False, id="another object"),
        pytest.param("DrainFailing is cleared", 70, False, id="other words"),
    ],
)
def test_warning_of_a_blocker_that_is_over_is_marked(message: str, second: int, *, cleared: bool) -> None:
    events = [
        event("DrainFailing", WARNING, second=20),
        event("BlockerCleared", message, second=second, type_="Normal"),
    ]
    view = build(running_plan(), events, now=NOW)
    (row,) = view.warnings
    assert (row.cleared is not None) is cleared
    out = io.StringIO()
    Console(file=out, width=200, color_system=None).print(display(view))
    assert (f"cleared at 12:01:10: {WARNING}" in out.getvalue()) is cleared


def test_time_of_each_warning_is_that_of_its_end() -> None:
    events = [
        event("JobSlow", "Job a/b has run for 90 min", second=1),
        event("JobSlow", "Job a/c has run for 90 min", second=2),
        event("BlockerCleared", "Job a/c: JobSlow is cleared", second=5, type_="Normal"),
        event("ReconcileError", "c", second=6, lastTimestamp=at(9)),
        event("BlockerCleared", "Job a/b: JobSlow is cleared", second=30, type_="Normal"),
    ]
    ends = [row.cleared.second if row.cleared else None for row in build(running_plan(), events, now=NOW).warnings]
    assert ends == [30, 5, None]
