"""The view as a function of plan, events and time."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hack.demo.view import EventRow, Mark, NodeRow, build, select

START = datetime(2030, 1, 1, 12, 0, 0, tzinfo=UTC)


def at(second: int) -> str:
    return f"2030-01-01T12:00:{second:02}Z"


def plan(**status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "demo"}, "spec": {"version": "v1.8.0"}, "status": status}


def times(*phases: str) -> list[dict[str, str]]:
    """Return timestamps of phases, a second apart."""
    return [{"phase": phase, "phaseTransitionTimestamp": at(second)} for second, phase in enumerate(phases)]


def test_plan_without_status_is_all_pending() -> None:
    view = build({"metadata": {"name": "demo"}, "spec": {"version": "v1.8.0"}}, [], now=START)
    assert view.route == "Harvester → v1.8.0"
    assert {row.mark for row in view.phases} == {Mark.PENDING}
    assert len(view.phases) == 8
    assert (view.elapsed, view.nodes, view.outcome) == (0.0, (), "")


def test_phases_of_a_running_plan_have_durations() -> None:
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


def test_failed_plan_marks_its_phase_and_stops_the_clock() -> None:
    status = {
        "currentPhase": "Failed",
        "phaseTransitionTimestamps": times("Initializing", "Initialized", "ISODownloading", "Failed"),
        "conditions": [{"type": "Progressing", "status": "False", "message": "the download failed"}],
    }
    view = build(plan(**status), [], now=START.replace(second=50))
    assert (view.phases[1].mark, view.phases[1].seconds) == (Mark.FAILED, 1.0)
    assert (view.outcome, view.cause, view.waiting, view.elapsed) == ("Failed", "the download failed", "", 3.0)


def test_blocked_plan_has_ended() -> None:
    condition = {"type": "Available", "status": "False", "reason": "ConcurrentUpgradeBlocked", "message": "by other"}
    view = build(plan(conditions=[condition]), [], now=START)
    assert (view.outcome, view.cause) == ("Blocked", "by other")


def test_last_error_is_the_message_of_degraded() -> None:
    condition = {"type": "Degraded", "status": "True", "message": "the repository does not respond"}
    assert build(plan(conditions=[condition]), [], now=START).last_error == condition["message"]
    condition["status"] = "False"
    assert build(plan(conditions=[condition]), [], now=START).last_error == ""


def test_nodes_are_sorted_by_number() -> None:
    states = {"node-10": {"state": "ImagePreloaded"}, "node-2": {"state": "PreDraining", "message": "draining"}}
    assert build(plan(nodeUpgradeStatuses=states), [], now=START).nodes == (
        NodeRow(name="node-2", state="PreDraining", message="draining"),
        NodeRow(name="node-10", state="ImagePreloaded", message=""),
    )


def test_nodes_in_progress_have_rows_and_others_are_counted() -> None:
    states = {f"node-{number}": {"state": "ImagePreloaded"} for number in range(40)}
    states["node-33"] = {"state": "WaitingReboot"}
    rows, others = select(build(plan(nodeUpgradeStatuses=states), [], now=START).nodes)
    assert len(rows) == 12
    assert rows[0].name == "node-33"
    assert others == "28 ImagePreloaded"


def test_latest_events_are_sorted_by_time() -> None:
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
