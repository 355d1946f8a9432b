"""The times of attempts in a raw status."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from upgrade_manager.api.attempts import idle_times, seconds_of_work, work_text

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
def test_time_between_attempts_is_no_work(entries: list[Any], span: tuple[float, float], seconds: float) -> None:
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
