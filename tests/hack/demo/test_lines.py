"""Lines of text: one for each change."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hack.demo.lines import changes
from hack.demo.view import EventRow, Mark, NodeRow, PhaseRow, View

QUIET = View(
    plan="demo",
    route="Harvester → v1.8.0",
    elapsed=0.0,
    phases=(PhaseRow(name="Initialize", mark=Mark.PENDING, seconds=None),),
    nodes=(),
    waiting="",
    last_error="",
    events=(),
    outcome="",
    cause="",
)
WARNING = EventRow(time="12:00:00", type="Warning", reason="ImageCleanupSkipped", message="no list", count=1)
REPEATED = EventRow(
    time="12:00:00", type="Normal", reason="PhaseCompleted", message="Completed phase Initialize", count=1
)


def phase(mark: Mark, seconds: float) -> dict[str, Any]:
    return {"phases": (PhaseRow(name="Initialize", mark=mark, seconds=seconds),)}


@pytest.mark.parametrize(
    ("change", "lines"),
    [
        pytest.param({}, [], id="nothing"),
        pytest.param(
            phase(Mark.DONE, 2.0),
            ["phase Initialize: started", "phase Initialize: done after 2 s"],
            id="phase started and ended",
        ),
        pytest.param(
            {"nodes": (NodeRow(name="node-0", state="PreDrainFailed", message="no room"),)},
            ["node node-0: PreDrainFailed (no room)"],
            id="node with a message",
        ),
        pytest.param({"waiting": "for the image"}, ["now: for the image"], id="waiting"),
        pytest.param({"last_error": "no response"}, ["error: no response"], id="error"),
        pytest.param({"events": (WARNING,)}, ["event: Warning ImageCleanupSkipped: no list"], id="event"),
        pytest.param({"events": (REPEATED,)}, [], id="event of a phase"),
        pytest.param({"elapsed": 5.0}, [], id="elapsed time"),
    ],
)
def test_change_is_one_line(change: dict[str, Any], lines: list[str]) -> None:
    after = replace(QUIET, **change)
    assert list(changes(QUIET, after)) == lines
    assert list(changes(after, after)) == []


def test_final_node_states_precede_the_end_of_their_phase() -> None:
    states = {"node-0": "PostDrained", "node-1": "PreDrainFailed", "node-2": "ImagePreloading"}
    nodes = tuple(NodeRow(name=name, state=state, message="") for name, state in states.items())
    assert list(changes(QUIET, replace(QUIET, nodes=nodes, **phase(Mark.DONE, 2.0)))) == [
        "phase Initialize: started",
        "node node-0: PostDrained",
        "node node-1: PreDrainFailed",
        "phase Initialize: done after 2 s",
        "node node-2: ImagePreloading",
    ]


def test_event_with_the_last_error_is_not_printed() -> None:
    failing = replace(QUIET, last_error="no list")
    assert list(changes(QUIET, replace(failing, events=(WARNING,)))) == ["error: no list"]
    assert list(changes(failing, replace(QUIET, events=(WARNING,)))) == []
