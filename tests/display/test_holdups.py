"""The blockers of an upgrade, with begin and end."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from unittest import mock

import pytest

from tests.support.managers.displayed import NOW, START, at, event, plan, times
from tests.support.managers.histories import UnwrittenHistory
from tests.support.managers.reported import PAST, succeeded
from upgrade_manager.api.blockers import Blocker, BlockerReason
from upgrade_manager.display.holdups import HoldUp, held_seconds, holdups
from upgrade_manager.display.view import build
from upgrade_manager.pipeline.events import PlanEvents

LASTING = {**PAST[1], "since": at(10), "remedy": "r"}


def found(**status: Any) -> tuple[HoldUp, ...]:
    one = plan(**status)
    return holdups(one, build(one, [], now=NOW))


@pytest.mark.rule("report: what held the upgrade up is shown with its times, also after its events have expired")
def test_past_blocker_has_begin_end_and_what_it_held_up() -> None:
    slow, budget, silent = succeeded().holdups
    assert (budget.reason, budget.object) == ("DrainFailing", "PodDisruptionBudget default/shop")
    assert (slow.held, budget.held, silent.held) == ("ClusterUpgrade", "NodeUpgrade of node-1", "NodeUpgrade")
    assert budget.span.begun == START + timedelta(seconds=6700)
    assert [one.seconds for one in (slow, budget, silent)] == [900, 550, 300]


def test_times_in_which_two_blockers_overlap_count_once() -> None:
    assert succeeded().held_seconds == 900 + 600
    assert held_seconds([]) == 0
    inner = {**PAST[0], "since": at(4100), "until": at(4200)}
    assert held_seconds(found(pastBlockers=[PAST[0], inner])) == 900


@pytest.mark.parametrize(
    ("phase", "is_open", "seconds"), [("NodeUpgrading", True, 72 * 60 - 10), ("Failed", False, 20)], ids=["now", "end"]
)
def test_lasting_blocker_ends_now_or_with_the_plan(phase: str, *, is_open: bool, seconds: float) -> None:
    reached = times("Initializing", "Initialized", "ISODownloading", phase, step=10)
    (one,) = found(currentPhase=phase, phaseTransitionTimestamps=reached, blockers=[LASTING])
    assert (one.span.is_open, one.seconds) == (is_open, seconds)


@pytest.mark.parametrize("entry", ["x", {}, {"since": at(0)}, {"until": at(0)}, {"since": 1, "until": 2}])
def test_entry_without_both_times_is_left_out(entry: object) -> None:
    assert found(pastBlockers=[entry, PAST[0]])[0].reason == "JobSlow"
    assert len(found(pastBlockers=[entry, PAST[0]])) == 1


def test_end_before_the_begin_is_not_a_duration() -> None:
    (one,) = found(pastBlockers=[{**PAST[0], "since": at(10), "until": at(5)}])
    assert (one.seconds, one.held) == (0, "")
    assert one.text == PAST[0]["message"]


CLEARED = "PodDisruptionBudget default/shop: DrainFailing is cleared"


@pytest.mark.parametrize(
    ("past", "message", "seconds"),
    [
        ([], "PodDisruptionBudget default/shop: m", [60]),
        ([PAST[1]], "PodDisruptionBudget default/shop: m", [550]),
        ([], "PodDisruptionBudget default/other: m", []),
    ],
    ids=["only events", "a record", "another object"],
)
def test_events_are_read_where_the_status_has_no_record(
    past: list[dict[str, Any]], message: str, seconds: list[float]
) -> None:
    one = plan(currentPhase="Initializing", phaseTransitionTimestamps=times("Initializing"), pastBlockers=past)
    events = [
        event("DrainFailing", message, second=10, count=2, lastTimestamp=at(50)),
        event("BlockerCleared", CLEARED, second=70, type_="Normal"),
        event("BlockerCleared", "other text", second=71, type_="Normal"),
    ]
    found = holdups(one, build(one, events, now=NOW))
    assert [row.seconds for row in found] == seconds
    assert past or [row.text for row in found] == [f"Initialize waited. {message}"] * len(seconds)


def test_message_of_the_manager_is_understood() -> None:
    recorder = mock.Mock()
    budget = Blocker(
        reason=BlockerReason.DRAIN_FAILING,
        kind="PodDisruptionBudget",
        namespace="default",
        name="shop",
        message="m",
        remedies=(),
        since=START,
    )
    PlanEvents(recorder, now=lambda: NOW, history=UnwrittenHistory()).blocker_cleared(plan(), budget)
    assert recorder.record.call_args.kwargs["message"] == CLEARED
