from __future__ import annotations

import copy
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upgrade_manager.api.condition_model import Condition
from upgrade_manager.api.conditions import (
    DEGRADED,
    FALSE,
    MAX_MESSAGE,
    PROGRESSING,
    TRUE,
    find_condition,
    remove_condition,
    set_condition,
)
from upgrade_manager.api.timestamps import format_time

THEN = datetime(2025, 11, 21, 9, tzinfo=UTC)
NOW = THEN + timedelta(minutes=5)

OLD: dict[str, Any] = {
    "type": PROGRESSING,
    "status": TRUE,
    "observedGeneration": 1,
    "lastTransitionTime": format_time(THEN),
    "reason": "Initializing",
    "message": "",
}
FOREIGN: dict[str, Any] = {"type": "Paused", "status": "Unknown", "severity": "low"}

WAITING = Condition(
    type=PROGRESSING, status=TRUE, reason="ISODownloading", message="image up-iso: 40 %", observed_generation=2
)
ENDED = Condition(type=PROGRESSING, status=FALSE, reason="Succeeded", message="Upgraded", observed_generation=2)

statuses = st.sampled_from([TRUE, FALSE, "Unknown"])
conditions = st.builds(Condition, type=st.sampled_from([PROGRESSING, DEGRADED, "Other"]), status=statuses)


@pytest.mark.rule(
    "api: conditions are a map by type of metav1.Condition",
    "api: times are RFC 3339, UTC, in whole seconds",
)
def test_new_condition_gets_the_current_time() -> None:
    assert set_condition(None, WAITING, NOW) == [
        {
            "type": "Progressing",
            "status": "True",
            "observedGeneration": 2,
            "reason": "ISODownloading",
            "message": "image up-iso: 40 %",
            "lastTransitionTime": "2025-11-21T09:05:00Z",
        }
    ]


@pytest.mark.rule("api: lastTransitionTime changes only with the condition's status")
@pytest.mark.parametrize(
    ("old", "new", "time"),
    [
        pytest.param(OLD, WAITING, THEN, id="same status: kept"),
        pytest.param(OLD, ENDED, NOW, id="another status: now"),
        pytest.param({**OLD, "lastTransitionTime": ""}, WAITING, NOW, id="an empty time: now"),
        pytest.param({**OLD, "lastTransitionTime": 7}, WAITING, NOW, id="no text: now"),
        pytest.param({"type": PROGRESSING}, WAITING, NOW, id="no status: now"),
    ],
)
def test_transition_time_changes_only_with_the_status(old: dict[str, Any], new: Condition, time: datetime) -> None:
    (found,) = set_condition([old], new, NOW)
    assert found["lastTransitionTime"] == format_time(time)
    assert found["reason"] == new.reason


def test_other_conditions_fields_and_order_are_kept() -> None:
    before = [FOREIGN, {**OLD, "owner": "x"}, {"type": DEGRADED, "status": FALSE}]
    untouched = copy.deepcopy(before)
    after = set_condition(before, ENDED, NOW)
    assert [entry["type"] for entry in after] == ["Paused", "Progressing", "Degraded"]
    assert after[0] == FOREIGN
    assert after[1]["owner"] == "x"
    assert before == untouched


def test_long_message_is_truncated() -> None:
    long = Condition(type=DEGRADED, status=TRUE, reason="ReconcileError", message="x" * (MAX_MESSAGE + 1))
    (found,) = set_condition([], long, NOW)
    assert len(found["message"]) == MAX_MESSAGE
    assert found["message"].endswith("x…")


@pytest.mark.parametrize("conditions", [None, "none", {}, 3, [None, "x", 3]], ids=repr)
def test_invalid_conditions_count_as_empty(conditions: object) -> None:
    assert find_condition(conditions, PROGRESSING) is None
    assert len(set_condition(conditions, WAITING, NOW)) == 1


def test_condition_is_found_by_type_and_a_duplicate_removed() -> None:
    assert find_condition([FOREIGN, OLD], PROGRESSING) == OLD
    assert len(set_condition([OLD, OLD], WAITING, NOW)) == 1


@given(st.lists(conditions), st.integers(0, 3600))
def test_setting_a_condition_is_idempotent(run: list[Condition], later: int) -> None:
    raw: list[dict[str, Any]] = []
    for condition in run:
        raw = set_condition(raw, condition, NOW)
        assert set_condition(raw, condition, NOW + timedelta(seconds=later)) == raw
    assert len({entry["type"] for entry in raw}) == len(raw)


@pytest.mark.parametrize(
    ("conditions", "left"),
    [
        pytest.param([OLD, FOREIGN], [FOREIGN], id="removed"),
        pytest.param([FOREIGN], [FOREIGN], id="absent"),
        pytest.param([None, OLD, "x"], [], id="other types"),
        pytest.param(None, [], id="no list"),
    ],
)
def test_condition_is_removed(conditions: object, left: list[dict[str, Any]]) -> None:
    before = copy.deepcopy(conditions)
    assert remove_condition(conditions, PROGRESSING) == left
    assert conditions == before
