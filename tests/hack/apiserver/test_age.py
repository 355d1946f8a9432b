from __future__ import annotations

from datetime import UTC, datetime

import pytest

from hack.apiserver.table import age, human_duration

MINUTE, HOUR, DAY, YEAR = 60, 3600, 86400, 365 * 86400


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-2, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (2 * MINUTE + 5, "2m5s"),
        (10 * MINUTE + 5, "10m"),
        (3 * HOUR, "3h"),
        (3 * HOUR + 20 * MINUTE, "3h20m"),
        (9 * HOUR + 20 * MINUTE, "9h"),
        (2 * DAY, "2d"),
        (2 * DAY + 3 * HOUR, "2d3h"),
        (9 * DAY + 3 * HOUR, "9d"),
        (2 * YEAR + 3 * DAY, "2y3d"),
        (9 * YEAR + 3 * DAY, "9y"),
    ],
)
def test_duration_has_at_most_two_units(seconds: int, text: str) -> None:
    assert human_duration(seconds) == text


@pytest.mark.parametrize(
    ("timestamp", "text"),
    [
        ("2026-01-01T00:00:00Z", "5m"),
        ("2026-01-01T00:04:30.500000Z", "29s"),
        ("2026-01-01T01:00:00+01:00", "5m"),
        ("2026-01-01T00:00:00", "5m"),
        (None, "<unknown>"),
        ("", "<unknown>"),
        ("then", "<invalid>"),
    ],
)
def test_age_counts_from_a_timestamp(timestamp: str | None, text: str) -> None:
    assert age(timestamp, datetime(2026, 1, 1, 0, 5, tzinfo=UTC)) == text
