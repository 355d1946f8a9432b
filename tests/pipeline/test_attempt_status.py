"""The status patch across attempts of a plan."""

from __future__ import annotations

import pytest

from tests.pipeline.test_status import new_patch


@pytest.mark.rule("metrics: each end of an attempt is counted once, and each attempt observes its phases")
def test_attempt_that_begins_and_fails_in_one_write_has_failed() -> None:
    time = "2026-01-01T00:00:00Z"
    old = [{"phase": value, "phaseTransitionTimestamp": time} for value in ("Initializing", "Failed")]
    patch = new_patch({"phaseTransitionTimestamps": old, "attempt": 1})
    patch["phaseTransitionTimestamps"] = old[:1]
    patch["attempt"] = 2
    assert patch.unwritten_phases() == []
    patch.record("Failed")
    assert patch.unwritten_phases() == ["Failed"]


@pytest.mark.parametrize(
    ("reason", "stays"),
    [pytest.param("TakenOver", ["Degraded"], id="taken over"), pytest.param("UpgradeFailed", [], id="failed")],
)
def test_queue_keeps_the_record_of_a_successor(reason: str, stays: list[str]) -> None:
    found = [{"type": type_, "status": "True", "reason": reason, "message": "m"} for type_ in ("Degraded", "Stalled")]
    patch = new_patch({"currentPhase": "Failed", "conditions": found})
    patch.queue("waits", since="2026-01-01T00:00:00Z")
    assert [one["type"] for one in patch["conditions"] if one["type"] in {"Degraded", "Stalled"}] == stays
