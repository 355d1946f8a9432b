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
