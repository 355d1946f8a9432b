"""The demo's sentences about its clock and its end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from hack.demo.program import clock, summary
from hack.fast_time import FastTime, real_time
from upgrade_manager.display.view import build

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def test_clock_is_explained_in_one_line() -> None:
    early = FastTime(rate=12.0, equal_at=datetime.now(UTC) + timedelta(hours=1))
    line = clock(early)
    assert line.startswith("Clock: 1 s is 12 s in the cluster, where it is ")
    assert len(line) <= 80
    assert clock(real_time()).startswith("Clock: the real one;")


@pytest.mark.parametrize(("rate", "took"), [(1.0, "in 60 s."), (4.0, "in 60 s, 15 s here.")])
def test_duration_is_that_of_both_clocks(rate: float, took: str) -> None:
    reached = (("Initializing", 0), ("Succeeded", 60))
    times = [
        {"phase": phase, "phaseTransitionTimestamp": f"{BEGIN + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%SZ}"}
        for phase, seconds in reached
    ]
    plan = {"metadata": {"name": "demo"}, "status": {"currentPhase": "Succeeded", "phaseTransitionTimestamps": times}}
    assert summary(build(plan, [], now=BEGIN), rate=rate).endswith(took)


def test_deleted_plan_is_not_a_failure_of_the_demo() -> None:
    assert summary(None, rate=4.0) == "\nDeleted: the upgrade ended with its UpgradePlan."
