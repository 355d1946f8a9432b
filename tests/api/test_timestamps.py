from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upgrade_manager.api.timestamps import (
    clock_of,
    format_clock,
    format_duration,
    format_time,
    parse_time,
    seconds_between,
)

NINE = datetime(2025, 11, 21, 9, tzinfo=UTC)


@pytest.mark.rule("api: times are RFC 3339, UTC, in whole seconds")
@pytest.mark.parametrize(
    ("moment", "text"),
    [
        pytest.param(NINE, "2025-11-21T09:00:00Z", id="utc"),
        pytest.param(NINE.replace(microsecond=999_999), "2025-11-21T09:00:00Z", id="a fraction is cut off"),
        pytest.param(NINE.astimezone(timezone(timedelta(hours=5, minutes=30))), "2025-11-21T09:00:00Z", id="elsewhere"),
    ],
)
def test_format_in_utc_and_whole_seconds(moment: datetime, text: str) -> None:
    assert format_time(moment) == text


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        pytest.param("2025-11-21T09:00:00Z", NINE, id="utc"),
        pytest.param("2025-11-21T14:30:00+05:30", NINE, id="an offset"),
        pytest.param("2025-11-21t09:00:00z", NINE, id="small letters"),
        pytest.param("2025-11-21T09:00:00.120000Z", NINE.replace(microsecond=120_000), id="a MicroTime"),
        pytest.param("2025-11-21T09:00:00.123456789Z", NINE.replace(microsecond=123_456), id="nanoseconds"),
        pytest.param("", None, id="empty"),
        pytest.param(None, None, id="null"),
        pytest.param(1732179600, None, id="a number"),
        pytest.param("2025-11-21T09:00:00", None, id="no zone"),
        pytest.param("2025-11-21", None, id="no time"),
        pytest.param("2025-W47-5T09:00:00Z", None, id="a week date"),
        pytest.param("2025-13-21T09:00:00Z", None, id="a thirteenth month"),
        pytest.param("0001-01-01T00:00:00+23:00", None, id="before the first year"),
        pytest.param("yesterday", None, id="prose"),
    ],
)
def test_parse(text: object, moment: datetime | None) -> None:
    assert parse_time(text) == moment


@given(st.datetimes(timezones=st.just(UTC)))
def test_format_and_parse_round_trip(moment: datetime) -> None:
    assert parse_time(format_time(moment)) == moment.replace(microsecond=0)


@given(st.text())
def test_parsing_never_fails(text: str) -> None:
    assert parse_time(text) is None or text


def test_durations_are_never_negative() -> None:
    assert seconds_between(NINE, NINE + timedelta(minutes=2)) == 120
    assert seconds_between(NINE + timedelta(minutes=2), NINE) == 0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (59.6, "1 min 0 s"), (3599, "59 min 59 s"), (3600, "1 h 0 min"), (90_061, "25 h 1 min")],
)
def test_duration_has_its_two_largest_units(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    ("text", "clock"),
    [
        ("2025-11-21T09:00:59Z", "09:00 UTC on 21 November"),
        ("2025-11-21T04:30:00+05:30", "23:00 UTC on 20 November"),
        ("2026-01-01T00:00:00Z", "00:00 UTC on 1 January"),
        ("soon", "soon"),
        ("", ""),
    ],
    ids=["utc", "another day elsewhere", "one digit", "no time", "empty"],
)
def test_time_of_day_for_messages(text: str, clock: str) -> None:
    assert clock_of(text) == clock


def test_time_of_day_is_in_utc() -> None:
    assert format_clock(NINE.astimezone(timezone(timedelta(hours=5)))) == "09:00 UTC on 21 November"
