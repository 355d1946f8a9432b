"""Lines of text: one for each change."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.support.managers.displayed import NOW, START, TIMED, plan, times
from upgrade_manager.api.phases import PHASES
from upgrade_manager.display.lines import changes
from upgrade_manager.display.model import EventRow, NodeRow, PhaseRow, PhaseState, PlanState
from upgrade_manager.display.view import build

QUIET = replace(
    build(plan(), [], now=START),
    phases=(PhaseRow(name="Initialize", state=PhaseState.PENDING, started=None, ended=None, seconds=None),),
)
WARNING = EventRow(
    first=START, time=START, type="Warning", reason="ImageCleanupSkipped", message="no list", count=1, cleared=None
)
REPEATED = replace(WARNING, type="Normal", reason="PhaseCompleted", message="Completed phase Initialize")


def node(name: str, state: str, message: str = "") -> NodeRow:
    return NodeRow(name=name, state=state, since=None, reason="", message=message)


def phase(mark: PhaseState, seconds: float) -> dict[str, Any]:
    return {"phases": (PhaseRow(name="Initialize", state=mark, started=START, ended=None, seconds=seconds),)}


STARTED, DONE = "phase Initialize: started", "phase Initialize: done after 2 s"
FAILED = node("node-0", "PreDrainFailed", "no room")
FAILURE = {"state": PlanState.FAILED, "status": "Failed: PreloadFailed", "cause": "no room"}


@pytest.mark.parametrize(
    ("change", "lines"),
    [
        pytest.param({}, [], id="nothing"),
        pytest.param(phase(PhaseState.DONE, 2.0), [STARTED, DONE], id="phase started and ended"),
        pytest.param(phase(PhaseState.SKIPPED, 0.0), [], id="phase skipped"),
        pytest.param({"nodes": (FAILED,)}, ["node node-0: PreDrainFailed (no room)"], id="node with a message"),
        pytest.param({"waiting": "for the image"}, ["now: for the image"], id="waiting"),
        pytest.param({"last_error": "no response"}, ["error: no response"], id="error"),
        pytest.param({"events": (WARNING,)}, ["event: Warning ImageCleanupSkipped: no list"], id="event"),
        pytest.param({"events": (REPEATED,)}, [], id="event of a phase"),
        pytest.param({"state": PlanState.SUCCEEDED}, ["plan demo: Succeeded"], id="success"),
        pytest.param(FAILURE, ["plan demo: Failed: PreloadFailed: no room"], id="failure"),
        pytest.param({"state": PlanState.RUNNING, "status": "Running"}, ["plan demo: Running"], id="start"),
        pytest.param({"status": "Stalled: JobSlow"}, ["plan demo: Stalled: JobSlow"], id="stall"),
        pytest.param({"deleting": True}, ["plan demo: deleting"], id="deletion"),
        pytest.param({"elapsed_seconds": 5.0}, [], id="elapsed time"),
    ],
)
def test_change_is_one_line(change: dict[str, Any], lines: list[str]) -> None:
    after = replace(QUIET, **change)
    assert list(changes(QUIET, after)) == lines
    assert list(changes(after, after)) == []


@pytest.mark.parametrize("step", [0, 1])
def test_phases_of_one_second_are_in_order(step: int) -> None:
    before, after = (
        build(plan(), [], now=START),
        build(plan(phaseTransitionTimestamps=times(*TIMED, step=step)), [], now=NOW),
    )
    lines = [line.split()[1:3] for line in changes(before, after) if line.startswith("phase ")]
    expected = [[f"{phase}:", word] for phase in PHASES if phase.active in TIMED for word in ("started", "done")]
    assert lines == expected
    # In any order of the recorded times.
    mixed = plan(phaseTransitionTimestamps=times(*TIMED, step=step)[::-1])
    assert build(mixed, [], now=NOW).phases == after.phases


def test_durations_are_written_as_everywhere() -> None:
    done = replace(QUIET, **phase(PhaseState.DONE, 1308.0))
    assert [*changes(QUIET, done)][-1] == "phase Initialize: done after 21 min 48 s"


def test_final_node_states_precede_the_end_of_their_phase() -> None:
    states = {"node-0": "PostDrained", "node-1": "PreDrainFailed", "node-2": "ImagePreloading"}
    nodes = tuple(node(name, state) for name, state in states.items())
    assert list(changes(QUIET, replace(QUIET, nodes=nodes, **phase(PhaseState.DONE, 2.0)))) == [
        *(STARTED, "node node-0: PostDrained", "node node-1: PreDrainFailed", DONE, "node node-2: ImagePreloading"),
    ]


def test_event_with_the_last_error_is_not_printed() -> None:
    failing = replace(QUIET, last_error="no list")
    assert list(changes(QUIET, replace(failing, events=(WARNING,)))) == ["error: no list"]
    assert list(changes(failing, replace(QUIET, events=(WARNING,)))) == []
