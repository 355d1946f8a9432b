from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from upgrade_manager.runtime.lease import (
    LEASE_DURATION,
    RENEW_DEADLINE,
    REQUEST_TIMEOUT,
    RETRY_PERIOD,
    held_lease,
    holder_of,
    is_led,
    last_renewal,
    micro_time,
    new_lease,
    pod_of,
    renewed_at,
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


@pytest.mark.parametrize(
    ("identity", "seconds", "leads"),
    [
        pytest.param("pod_1", 30, True, id="may be taken over"),
        pytest.param("pod_1", 31, False, id="expired"),
        pytest.param("", 1, False, id="released"),
    ],
)
def test_replica_leads_while_it_renews(identity: str, seconds: int, *, leads: bool) -> None:
    renewed = datetime(2030, 1, 1, tzinfo=UTC)
    lease = new_lease("x", namespace="x", identity=identity, now=renewed)
    assert is_led(lease, at=renewed + timedelta(seconds=seconds)) is leads
    assert (pod_of(lease), renewed_at(lease)) == (identity[:3], renewed)
    assert not is_led({"spec": {"holderIdentity": "pod_1"}}, at=renewed)


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        pytest.param(
            {"holderIdentity": "manager-1_uuid", "renewTime": micro_time(NOW - timedelta(minutes=9))},
            "manager-1 last renewed its lease 9 min 0 s ago",
            id="held",
        ),
        pytest.param(
            {"renewTime": micro_time(NOW - timedelta(seconds=20))},
            "the last leader released its lease 20 s ago",
            id="released",
        ),
        pytest.param({"holderIdentity": "manager-1"}, "manager-1 last renewed its lease", id="without a time"),
    ],
)
def test_last_renewal_names_holder_and_age(spec: dict[str, str], sentence: str) -> None:
    assert last_renewal({"spec": spec}, now=NOW) == sentence
