"""The picture is a pure function of plan, events and time."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from hack.demo.view import EventRow, Mark, NodeRow, build, select

START = datetime(2030, 1, 1, 12, 0, 0, tzinfo=UTC)


def at(second: int) -> str:
    return f"2030-01-01T12:00:{second:02}Z"


def plan(**status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "demo"}, "spec": {"version": "v1.8.0"}, "status": status}


def times(*phases: str) -> list[dict[str, str]]:
    """Each phase value one second after the one before."""
    return [{"phase": phase, "phaseTransitionTimestamp": at(second)} for second, phase in enumerate(phases)]


def test_a_plan_without_status_is_all_pending() -> None:
    view = build({"metadata": {"name": "demo"}, "spec": {"version": "v1.8.0"}}, [], now=START)
    assert view.route == "Harvester → v1.8.0"
    assert {row.mark for row in view.phases} == {Mark.PENDING}
    assert len(view.phases) == 8
    assert (view.elapsed, view.nodes, view.outcome) == (0.0, (), "")


def test_a_running_plan_shows_done_active_and_pending_phases_with_their_durations() -> None:
    status = {
        "currentPhase": "ISODownloading",
        "previousVersion": "v1.7.1",
        "phaseTransitionTimestamps": times("Initializing", "Initialized", "ISODownloading"),
        "conditions": [{"type": "Progressing", "status": "True", "message": "waiting for image demo-iso"}],
    }
    view = build(plan(**status), [], now=START.replace(second=9))
    assert view.route == "Harvester v1.7.1 → v1.8.0"
    assert [(row.mark, row.seconds) for row in view.phases[:3]] == [
        (Mark.DONE, 1.0),
        (Mark.ACTIVE, 7.0),
        (Mark.PENDING, None),
    ]
    assert view.waiting == "waiting for image demo-iso"
    assert view.elapsed == 9.0


def test_between_two_phases_nothing_is_waited_for_any_more() -> None:
    status = {
        "currentPhase": "Initialized",
        "phaseTransitionTimestamps": times("Initializing", "Initialized"),
        "conditions": [{"type": "Progressing", "status": "True", "message": "waiting for what has come"}],
    }
    assert build(plan(**status), [], now=START).waiting == ""


def test_a_failed_plan_marks_the_phase_that_failed_and_stops_its_clock() -> None:
    status = {
        "currentPhase": "Failed",
        "phaseTransitionTimestamps": times("Initializing", "Initialized", "ISODownloading", "Failed"),
        "conditions": [{"type": "Progressing", "status": "False", "message": "the download failed"}],
    }
    view = build(plan(**status), [], now=START.replace(second=50))
    assert (view.phases[1].mark, view.phases[1].seconds) == (Mark.FAILED, 1.0)
    assert (view.outcome, view.cause, view.waiting, view.elapsed) == ("Failed", "the download failed", "", 3.0)


def test_a_blocked_plan_has_ended_too() -> None:
    condition = {"type": "Available", "status": "False", "reason": "ConcurrentUpgradeBlocked", "message": "by other"}
    view = build(plan(conditions=[condition]), [], now=START)
    assert (view.outcome, view.cause) == ("Blocked", "by other")


@pytest.mark.parametrize(
    ("status", "trouble"),
    [
        pytest.param("True", "the repository does not answer", id="degraded"),
        pytest.param("False", "", id="healthy"),
    ],
)
def test_trouble_is_what_degraded_says_while_it_is_true(status: str, trouble: str) -> None:
    condition = {"type": "Degraded", "status": status, "message": "the repository does not answer"}
    assert build(plan(conditions=[condition]), [], now=START).trouble == trouble


def test_nodes_stand_in_the_order_of_their_numbers() -> None:
    states = {"node-10": {"state": "ImagePreloaded"}, "node-2": {"state": "PreDraining", "message": "draining"}}
    assert build(plan(nodeUpgradeStatuses=states), [], now=START).nodes == (
        NodeRow(name="node-2", state="PreDraining", note="draining"),
        NodeRow(name="node-10", state="ImagePreloaded", note=""),
    )


def test_of_many_nodes_those_that_something_happens_to_get_a_row_and_the_rest_is_counted() -> None:
    states = {f"node-{number}": {"state": "ImagePreloaded"} for number in range(40)}
    states["node-33"] = {"state": "WaitingReboot"}
    rows, others = select(build(plan(nodeUpgradeStatuses=states), [], now=START).nodes)
    assert len(rows) == 12
    assert rows[0].name == "node-33"
    assert others == "28 ImagePreloaded"


def test_a_few_nodes_all_get_a_row() -> None:
    nodes = tuple(NodeRow(name=f"node-{number}", state="ImagePreloaded", note="") for number in range(12))
    assert select(nodes) == (nodes, "")


def test_the_latest_events_are_shown_oldest_first() -> None:
    events = [
        {
            "metadata": {"name": f"e{second}"},
            "type": "Normal",
            "reason": "R",
            "message": str(second),
            "lastTimestamp": at(second),
        }
        for second in (9, 1, 3, 5, 2, 8, 7)
    ]
    view = build(plan(), events, now=START)
    assert [event.message for event in view.events] == ["2", "3", "5", "7", "8", "9"]
    assert view.events[0] == EventRow(time="12:00:02", type="Normal", reason="R", message="2", count=1)


def test_a_clock_behind_the_managers_gives_no_negative_duration() -> None:
    view = build(plan(phaseTransitionTimestamps=times("Initializing")), [], now=START.replace(year=2029))
    assert view.phases[0].seconds == 0.0


def test_events_of_one_second_stand_in_the_order_of_their_writing() -> None:
    events = [
        {"metadata": {"name": name, "resourceVersion": version}, "message": name, "lastTimestamp": at(1)}
        for name, version in (("a", "10"), ("b", "9"), ("c", "11"))
    ]
    assert [event.message for event in build(plan(), events, now=START).events] == ["b", "a", "c"]
