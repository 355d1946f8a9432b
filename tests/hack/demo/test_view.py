"""The view as a function of plan, events and time."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hack.demo.view import Mark, build

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


def test_last_error_is_the_message_of_degraded() -> None:
    condition = {"type": "Degraded", "status": "True", "message": "the repository does not respond"}
    assert build(plan(conditions=[condition]), [], now=START).last_error == condition["message"]
    condition["status"] = "False"
    assert build(plan(conditions=[condition]), [], now=START).last_error == ""
