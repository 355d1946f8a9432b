from __future__ import annotations

import pytest

from tests.support.runtime_queue import new_limiter


def test_delays_double_up_to_the_maximum() -> None:
    limiter = new_limiter(base_delay=0.005, max_delay=1000)
    delays = [limiter.when("a") for _ in range(20)]
    assert delays[:4] == [0.005, 0.01, 0.02, 0.04]
    assert sum(delays[:10]) == pytest.approx(5, abs=0.2)
    assert delays[17] < 1000
    assert delays[18:] == [1000, 1000]


def test_failures_are_counted_per_key_until_forgotten() -> None:
    limiter = new_limiter()
    assert [limiter.when("a"), limiter.when("a"), limiter.when("b")] == [1, 2, 1]
    assert limiter.num_requeues("a") == 2
    limiter.forget("a")
    limiter.forget("never seen")
    assert limiter.num_requeues("a") == 0
    assert limiter.when("a") == 1


def test_any_number_of_failures_gives_a_finite_delay() -> None:
    limiter = new_limiter()
    assert {limiter.when("a") for _ in range(2000)} == {1, 2, 4, 8, 16, 32, 60}


def test_jitter_spreads_a_delay_over_its_factor() -> None:
    limiter = new_limiter(base_delay=10, max_delay=10, factor=0.5)
    delays = [limiter.when(str(n)) for n in range(200)]
    assert all(10 <= delay < 15 for delay in delays)
    assert max(delays) - min(delays) > 4
