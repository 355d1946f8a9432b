from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from upgrade_manager.runtime.lease import Timing, held_lease, holder_of, micro_time, new_lease

NOW = datetime(2025, 11, 21, 9, 0, 8, 120000, tzinfo=UTC)


def test_micro_time_has_six_digits_and_is_utc() -> None:
    assert micro_time(NOW) == "2025-11-21T09:00:08.120000Z"
    assert micro_time(NOW.astimezone(timezone(timedelta(hours=5)))) == "2025-11-21T09:00:08.120000Z"


@pytest.mark.parametrize(
    ("lease", "deadline", "retry"),
    [
        pytest.param(10, 10, 2, id="the lease must outlast the deadline"),
        pytest.param(15, 2.4, 2, id="the deadline must leave room for a retry"),
        pytest.param(15, 10, 0, id="retries need a pause"),
    ],
)
def test_unsafe_timings_are_refused(lease: float, deadline: float, retry: float) -> None:
    with pytest.raises(ValueError, match="need lease > deadline"):
        Timing(lease=lease, deadline=deadline, retry=retry)


@pytest.mark.parametrize(("deadline", "call"), [(10, 5), (1.5, 1)])
def test_no_call_eats_the_whole_deadline(deadline: float, call: float) -> None:
    assert Timing(deadline=deadline, retry=1).call == call


def test_a_part_of_a_second_of_lease_is_rounded_up() -> None:
    lease = new_lease("x", namespace="y", identity="a", duration=1.5, now=NOW)
    assert lease["spec"]["leaseDurationSeconds"] == 2


def test_a_lease_without_a_spec_is_free() -> None:
    lease = {"metadata": {"name": "x"}}
    assert holder_of(lease) == ""
    assert held_lease(lease, identity="a", duration=15, now=NOW)["spec"]["leaseTransitions"] == 1
