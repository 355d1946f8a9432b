from __future__ import annotations

from random import Random

from upgrade_manager.kube.retry import Backoff


class Lowest(Random):
    """No luck at all."""

    def random(self) -> float:
        return 0.0


def test_waits_double_from_08_to_30_seconds() -> None:
    backoff = Backoff(random=Lowest())
    assert [backoff.failed() for _ in range(8)] == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]


def test_each_wait_lies_between_one_and_two_steps() -> None:
    waits = []
    for seed in range(200):
        backoff = Backoff(random=Random(seed))
        backoff.failed()
        waits.append(backoff.failed())
    assert 1.6 <= min(waits) < 1.7
    assert 3.1 < max(waits) <= 3.2


def test_the_server_may_ask_for_more_but_not_for_less() -> None:
    backoff = Backoff(random=Lowest())
    assert backoff.failed(at_least=17) == 17
    assert backoff.failed(at_least=0.1) == 1.6


def test_only_two_minutes_of_health_since_the_last_failure_start_over() -> None:
    backoff = Backoff(random=Lowest())
    for _ in range(4):
        backoff.failed()
    backoff.succeeded(119)
    assert backoff.failed() == 12.8
    backoff.succeeded(119)
    assert backoff.failed() == 25.6
    backoff.succeeded(60)
    backoff.succeeded(60)
    assert backoff.failed() == 0.8
