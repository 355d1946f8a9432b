from __future__ import annotations

import asyncio
from random import Random

import pytest

from upgrade_manager.runtime.rate_limiter import Bucket, ItemExponential, MaxOf, spread


def test_waits_double_from_the_base_and_stop_at_the_cap() -> None:
    limiter: ItemExponential[str] = ItemExponential()
    waits = [limiter.when("a") for _ in range(20)]
    assert waits[:4] == [0.005, 0.01, 0.02, 0.04]
    assert waits[17] < 1000
    assert waits[18:] == [1000, 1000]


def test_ten_failures_wait_five_seconds_together() -> None:
    limiter: ItemExponential[str] = ItemExponential()
    assert sum(limiter.when("a") for _ in range(10)) == pytest.approx(5, abs=0.2)


def test_keys_count_for_themselves_and_forgetting_starts_again() -> None:
    limiter: ItemExponential[str] = ItemExponential(base=1, cap=60)
    assert [limiter.when("a"), limiter.when("a"), limiter.when("b")] == [1, 2, 1]
    assert limiter.num_requeues("a") == 2
    limiter.forget("a")
    limiter.forget("never seen")
    assert limiter.num_requeues("a") == 0
    assert limiter.when("a") == 1


def test_any_number_of_failures_is_a_finite_wait() -> None:
    limiter: ItemExponential[str] = ItemExponential(base=1, cap=60)
    assert {limiter.when("a") for _ in range(2000)} == {1, 2, 4, 8, 16, 32, 60}


def test_jitter_spreads_a_wait_over_its_factor() -> None:
    limiter: ItemExponential[int] = ItemExponential(base=10, cap=10, jitter=spread(Random(1), 0.5))
    waits = [limiter.when(n) for n in range(200)]
    assert all(10 <= wait < 15 for wait in waits)
    assert max(waits) - min(waits) > 4


async def test_a_bucket_gives_its_burst_at_once_and_then_its_rate() -> None:
    limiter: Bucket[str] = Bucket(rate=10, burst=2)
    assert [limiter.when("a") for _ in range(4)] == pytest.approx([0, 0, 0.1, 0.2])
    await asyncio.sleep(0.2)
    assert limiter.when("a") == pytest.approx(0.1)
    await asyncio.sleep(3600)
    assert [limiter.when("a") for _ in range(3)] == pytest.approx([0, 0, 0.1])
    limiter.forget("a")
    assert limiter.num_requeues("a") == 0


async def test_the_longest_wait_of_several_limiters_counts() -> None:
    limiter: MaxOf[str] = MaxOf(ItemExponential(base=1, cap=60), Bucket(rate=0.1, burst=1))
    assert [limiter.when("a"), limiter.when("b")] == [1, pytest.approx(10)]
    assert limiter.num_requeues("a") == 1
    limiter.forget("a")
    assert limiter.num_requeues("a") == 0
