from __future__ import annotations

import pytest

from hack.apiserver.schema.formats import matches_format


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("date-time", "2026-01-01T00:00:00.5+01:00", "2026-13-01T00:00:00Z"),
        ("date", "2026-01-01", "2026-02-30"),
        ("duration", "1h30m", "soon"),
        ("uuid", "0d5b6f1e-0000-4000-8000-00000000000a", "0d5b"),
        ("uri", "https://example.com/a", "example"),
        ("hostname", "a.example.com", "-"),
        ("email", "a@example.com", "a"),
        ("byte", "YQ==", "a"),
        ("ipv4", "10.0.0.1", "10.0.0.256"),
        ("ipv6", "::1", "1"),
        ("cidr", "10.0.0.0/8", "10.0.0.0"),
    ],
)
def test_formats_that_are_checked(name: str, good: str, bad: str) -> None:
    assert matches_format(good, name)
    assert not matches_format(bad, name)


def test_other_formats_are_not() -> None:
    assert matches_format("anything", "password")
