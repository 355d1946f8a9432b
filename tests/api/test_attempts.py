"""The attempts in a raw status, and their times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from upgrade_manager.api.attempts import (
    MAX_ATTEMPTS,
    UNKNOWN_TIME,
    idle_times,
    is_requested,
    requested_attempt,
    retry_command,
    seconds_of_work,
    with_begun,
    with_failed,
    work_text,
)

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds: float) -> str:
    return f"{EPOCH + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%SZ}"


def attempts(*times: tuple[float, float | None]) -> list[dict[str, Any]]:
    """Return attempts with these begins and ends."""
    return [
        {"attempt": number, "begin": at(begin), **({"end": at(end)} if end is not None else {})}
        for number, (begin, end) in enumerate(times, 1)
    ]


TWICE = attempts((0, 100), (1000, 1300), (5000, None))


@pytest.mark.parametrize(
    ("entries", "span", "seconds"),
    [
        pytest.param([], (0, 50), 50, id="no attempt recorded"),
        pytest.param(TWICE[:1], (0, 5000), 5000, id="the first one has failed"),
        pytest.param(TWICE, (0, 6000), 100 + 300 + 1000, id="three attempts"),
        pytest.param(TWICE, (20, 60), 40, id="within an attempt"),
        pytest.param(TWICE, (200, 900), 0, id="between two"),
        pytest.param(TWICE, (50, 1100), 150, id="over one end"),
        pytest.param(attempts((0, 100), (40, None)), (0, 200), 200, id="a clock that was set back"),
        pytest.param([{"end": "x"}, {"begin": 7}, None, *TWICE[1:]], (900, 5100), 500, id="unreadable"),
    ],
)
def test_time_between_attempts_is_not_work(entries: list[Any], span: tuple[float, float], seconds: float) -> None:
    begun, ended = (EPOCH + timedelta(seconds=one) for one in span)
    assert seconds_of_work({"attempts": entries}, begun, ended) == seconds


def test_idle_times_are_from_an_end_to_the_next_begin() -> None:
    found = [((end - EPOCH).seconds, (begin - EPOCH).seconds) for end, begin in idle_times({"attempts": TWICE})]
    assert found == [(100, 1000), (1300, 5000)]


@pytest.mark.parametrize(
    ("status", "text"),
    [
        ({}, "0 s"),
        ({"phaseTransitionTimestamps": [{"phaseTransitionTimestamp": at(0)}]}, "1 h 40 min"),
        (
            {"phaseTransitionTimestamps": [{"phaseTransitionTimestamp": at(0)}], "attempt": 3, "attempts": TWICE},
            "23 min 20 s",
        ),
    ],
    ids=["not accepted", "one attempt", "three attempts"],
)
def test_work_of_an_upgrade_is_a_text(status: dict[str, Any], text: str) -> None:
    assert work_text(status, EPOCH + timedelta(seconds=6000)) == text


@pytest.mark.parametrize(
    ("value", "number"), [(None, 1), (1, 1), (2, 2), (0, 1), (-3, 1), (True, 1), ("2", 1), (2.0, 1)], ids=repr
)
def test_number_of_an_attempt_is_an_integer_from_1(value: object, number: int) -> None:
    assert requested_attempt({"attempt": value}) == number


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        pytest.param({"spec": {"attempt": 2}, "status": {"currentPhase": "Failed"}}, True, id="requested"),
        pytest.param({"spec": {"attempt": 2}, "status": {"currentPhase": "Failed", "attempt": 2}}, False, id="begun"),
        pytest.param({"spec": {"attempt": 2}, "status": {"currentPhase": "Succeeded"}}, False, id="not failed"),
        pytest.param({"spec": {}, "status": {"currentPhase": "Failed"}}, False, id="not requested"),
        pytest.param({"spec": None, "status": None}, False, id="null"),
        pytest.param({}, False, id="empty"),
    ],
)
def test_next_attempt_is_requested_after_a_failure(plan: dict[str, Any], *, expected: bool) -> None:
    assert is_requested(plan) is expected


def test_command_requests_the_next_attempt() -> None:
    assert retry_command("up") == "upgrade-manager retry up"


FIRST = {"attempt": 1, "begin": at(0)}
FAILED = {"end": at(60), "phase": "NodeUpgrade", "node": "n1", "cause": "it broke"}
ACCEPTED = {"phaseTransitionTimestamps": [{"phaseTransitionTimestamp": at(0)}]}


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param({}, [{**FAILED, "attempt": 1, "begin": UNKNOWN_TIME}], id="no time recorded"),
        pytest.param(ACCEPTED, [{**FAILED, **FIRST}], id="the first one"),
        pytest.param(
            {**ACCEPTED, "attempt": 2, "attempts": attempts((0, 20), (40, None))},
            [{**FIRST, "end": at(20)}, {**FAILED, "attempt": 2, "begin": at(40)}],
            id="the second one",
        ),
        pytest.param({**ACCEPTED, "attempts": [None, "x"]}, [{**FAILED, **FIRST}], id="unreadable"),
    ],
)
def test_failure_ends_the_present_attempt(status: dict[str, Any], expected: list[dict[str, Any]]) -> None:
    now = EPOCH + timedelta(seconds=60)
    assert with_failed(status, phase="NodeUpgrade", node="n1", cause="it\nbroke", now=now) == expected


def test_empty_fields_of_a_failure_are_left_out() -> None:
    assert with_failed(ACCEPTED, phase="", node="", cause="", now=EPOCH) == [{**FIRST, "end": at(0)}]


def test_new_attempt_has_its_begin() -> None:
    known = {"attempts": attempts((0, 20))}
    assert with_begun(known, attempt=2, now=EPOCH + timedelta(seconds=40)) == attempts((0, 20), (40, None))


def test_oldest_attempts_are_left_out() -> None:
    known = attempts(*((number, number) for number in range(MAX_ATTEMPTS)))
    found = with_begun({"attempts": known}, attempt=MAX_ATTEMPTS + 1, now=EPOCH)
    assert [entry["attempt"] for entry in found] == [*range(2, MAX_ATTEMPTS + 2)]
