from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from upgrade_manager.preflight.certificates import Validity, chain_validity

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def valid(after: timedelta, before: timedelta = -DAY) -> Validity:
    return Validity(not_before=NOW + before, not_after=NOW + after)


@pytest.mark.rule("pipeline: each certificate must be valid for the required days")
@pytest.mark.parametrize(
    ("left", "days", "enough", "words"),
    [
        pytest.param(30 * DAY, 7, True, "in 30 days, 2026-01-31T00:00:00Z", id="long enough"),
        pytest.param(7 * DAY, 7, True, "in 7 days, 2026-01-08T00:00:00Z", id="to the second"),
        pytest.param(
            7 * DAY - timedelta(seconds=1), 7, False, "in 6 days, 2026-01-07T23:59:59Z", id="a second too short"
        ),
        pytest.param(DAY, 7, False, "in 1 day, 2026-01-02T00:00:00Z", id="one day"),
        pytest.param(DAY / 2, 1, False, "in less than a day, 2026-01-01T12:00:00Z", id="hours"),
        pytest.param(-DAY, 7, False, "expired 2025-12-31T00:00:00Z", id="expired"),
        pytest.param(-timedelta(seconds=1), 1, False, "expired 2025-12-31T23:59:59Z", id="just expired"),
        pytest.param(3650 * DAY, 10**17, False, "in 3650 days, 2035-12-30T00:00:00Z", id="more days than exist"),
    ],
)
def test_outlasts_and_expiry(left: timedelta, days: int, *, enough: bool, words: str) -> None:
    assert valid(left).outlasts(days=days, now=NOW) is enough
    assert valid(left).expiry(NOW) == words


def test_fractions_of_a_second_are_truncated() -> None:
    late = NOW + timedelta(microseconds=1)
    assert not valid(7 * DAY).outlasts(days=7, now=late)


def test_chain_validity_is_the_intersection() -> None:
    chain = [valid(9 * DAY, -3 * DAY), valid(2 * DAY, -5 * DAY), valid(99 * DAY, -1 * DAY)]
    assert chain_validity(chain) == valid(2 * DAY, -1 * DAY)
