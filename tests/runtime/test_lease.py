from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from upgrade_manager.runtime.lease import (
    LEASE_DURATION,
    RENEW_DEADLINE,
    REQUEST_TIMEOUT,
    RETRY_PERIOD,
    held_lease,
    holder_of,
    micro_time,
)

NOW = datetime(2025, 11, 21, 9, 0, 8, 120000, tzinfo=UTC)


def test_micro_time_is_utc_with_six_digits() -> None:
    assert micro_time(NOW) == "2025-11-21T09:00:08.120000Z"
    assert micro_time(NOW.astimezone(timezone(timedelta(hours=5)))) == "2025-11-21T09:00:08.120000Z"


def test_time_limits_satisfy_client_gos_conditions() -> None:
    assert LEASE_DURATION > RENEW_DEADLINE > 1.2 * RETRY_PERIOD > 0
    assert REQUEST_TIMEOUT < RENEW_DEADLINE


def test_lease_without_a_spec_is_free() -> None:
    lease = {"metadata": {"name": "x"}}
    assert holder_of(lease) == ""
    assert held_lease(lease, identity="a", now=NOW)["spec"]["leaseTransitions"] == 1
