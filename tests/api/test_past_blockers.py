"""The blockers that are over, as the status keeps them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from upgrade_manager.api.blockers import Blocker, BlockerReason, entries_of
from upgrade_manager.api.past_blockers import MAX_BYTES, MAX_PAST, with_ended

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
NOW = NOON + timedelta(minutes=32)
BUDGET = Blocker(
    reason=BlockerReason.DRAIN_FAILING,
    kind="PodDisruptionBudget",
    namespace="default",
    name="shop",
    node="node-0",
    message="PodDisruptionBudget default/shop: it allows no disruption",
    remedies=(),
    since=NOON,
)
SLOW = Blocker(reason=BlockerReason.JOB_SLOW, kind="Job", name="j", message="m" * 400, remedies=(), since=NOON)
ENDED = {
    "reason": "DrainFailing",
    "kind": "PodDisruptionBudget",
    "namespace": "default",
    "name": "shop",
    "node": "node-0",
    "message": "PodDisruptionBudget default/shop: it allows no disruption",
    "since": "2026-01-01T12:00:00Z",
    "until": "2026-01-01T12:32:00Z",
}


def past(number: int, *, seconds: int = 60, message: str = "m") -> dict[str, Any]:
    until = NOON + timedelta(seconds=seconds)
    return {"name": str(number), "since": f"{NOON:%FT%TZ}", "until": f"{until:%FT%TZ}", "message": message}


def test_cleared_blocker_is_kept_with_begin_and_end() -> None:
    assert with_ended(None, entries_of([BUDGET, SLOW]), [SLOW], now=NOW) == [ENDED]
    (slow,) = with_ended([], entries_of([SLOW]), [], now=NOW) or []
    assert "node" not in slow
    assert slow["message"] == "m" * 200


@pytest.mark.parametrize("before", [None, [], "x", ["x"]])
def test_nothing_is_recorded_while_none_is_cleared(before: object) -> None:
    assert with_ended([ENDED], before, [BUDGET], now=NOW) is None
    assert with_ended([ENDED], entries_of([BUDGET]), [BUDGET], now=NOW) is None


def test_blocker_that_does_not_fit_any_more_is_not_a_past_one() -> None:
    others = [SLOW] * 60
    assert with_ended([], entries_of([BUDGET]), [*others, BUDGET], now=NOW) is None


def test_shortest_are_left_out_of_a_full_list() -> None:
    known = [past(number, seconds=0 if number == 7 else 60) for number in range(MAX_PAST)]
    kept = with_ended(known, entries_of([BUDGET]), [], now=NOW) or []
    assert [one["name"] for one in kept] == [*(str(one) for one in range(MAX_PAST) if one != 7), "shop"]


@pytest.mark.parametrize("text", ["m", "漢"])
def test_size_of_the_list_is_bounded(text: str) -> None:
    known = [past(number, message=text * 2000) for number in range(MAX_PAST)]
    broken: Any = "x"
    kept = with_ended([*known, broken], entries_of([BUDGET]), [], now=NOW) or []
    assert ENDED in kept
    assert broken not in kept
    assert len(json.dumps(kept, ensure_ascii=False).encode()) <= MAX_BYTES
