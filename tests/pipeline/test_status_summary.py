"""The fields of a status that follow from the others: other tools judge a plan by them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.pipeline.test_status import Clock, accepted, conditions, new_patch, written
from upgrade_manager.api.phases import PHASE_VALUES

UNSEEN = {"conditions": [{"type": "Reconciling", "status": "True", "lastTransitionTime": "1970-01-01T00:00:00Z"}]}


@pytest.mark.rule(
    "api: the first write replaces the status that the schema sets by default",
    "api: observedGeneration is written with every status",
)
def test_first_write_replaces_the_default() -> None:
    stored = {**UNSEEN, "display": {"state": "Pending", "future": 1}}
    patch = new_patch(stored)
    patch.accept("Initializing", "v1.8.0")
    patch.summarize()
    after = written(patch, stored)
    assert [one["type"] for one in after["conditions"]] == [
        "Reconciling", "Available", "Progressing", "Degraded", "Ready",
    ]  # fmt: skip
    assert {one["lastTransitionTime"] for one in after["conditions"]} == {"2026-01-01T00:00:00Z"}
    assert after["display"]["state"] == "Running"
    assert "future" not in after["display"]
    assert after["observedGeneration"] == 3


def test_default_is_replaced_after_a_write_of_the_metadata() -> None:
    patch = new_patch(UNSEEN)
    patch.accept("Initializing", "v1.8.0")
    patch.rebase({"metadata": {"generation": 3}, "status": UNSEEN}, keep=True)
    patch.summarize()
    assert written(patch, UNSEEN)["conditions"][0]["lastTransitionTime"] == "2026-01-01T00:00:00Z"


@pytest.mark.rule("api: Reconciling is the first condition until the end")
@pytest.mark.parametrize("before", [[], [{"type": "Stalled", "status": "True", "reason": "JobSlow"}]])
def test_reconciling_comes_first(before: list[Any]) -> None:
    patch = new_patch({"currentPhase": "NodeUpgrading", "conditions": before})
    patch.waiting("waiting for a Node")
    patch.summarize()
    assert written(patch)["conditions"][0]["type"] == "Reconciling"


def test_condition_that_is_set_already_is_not_built_again() -> None:
    patch = accepted()
    before = patch.fields["conditions"]
    patch.waiting("waiting for a Node")
    assert patch.fields["conditions"] is before
    patch.waiting("waiting for another Node")
    assert patch.fields["conditions"] is not before


def test_second_summary_changes_nothing() -> None:
    clock = Clock()
    patch = accepted(clock=clock)
    patch.summarize()
    before = written(patch)
    clock.time += timedelta(hours=1)
    again = new_patch(before, clock=clock)
    again.summarize()
    assert again.difference() == {}


@pytest.mark.rule("api: Reconciling is absent after the end", "api: a failed plan is Stalled (UpgradeFailed)")
def test_failure_is_stalled_also_after_its_blockers_are_cleared() -> None:
    clock = Clock()
    patch = accepted(clock=clock)
    patch.fail("the disk is full", cause="the disk is full", todo="Correct it")
    patch.summarize()
    before = written(patch)
    clock.time += timedelta(hours=1)
    again = new_patch(before, clock=clock)
    again.blocked([])
    again.summarize()
    assert again.difference() == {}
    found = conditions(before)
    assert "Reconciling" not in found
    assert found["Ready"] == ("False", "Refused", "the disk is full. Correct it")
    assert found["Stalled"] == ("True", "UpgradeFailed", "the disk is full. Correct it")


@pytest.mark.rule("api: refused: Progressing=False (Refused) with the cause as message")
@pytest.mark.parametrize(
    ("reached", "reason"),
    [(1, "Refused"), (2, "Refused"), (3, "Failed"), (len(PHASE_VALUES), "Failed")],
    ids=lambda value: PHASE_VALUES[value - 1] if isinstance(value, int) else value,
)
def test_end_before_the_download_is_a_refusal(reached: int, reason: str) -> None:
    patch = new_patch()
    for phase in PHASE_VALUES[:reached]:
        patch.record(phase)
    patch.fail("no Version", cause="no Version", todo="Create one")
    assert conditions(written(patch))["Progressing"] == ("False", reason, "no Version")
