from __future__ import annotations

import pytest

from hack.bench.catalogue import BENCHMARKS, load


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_can_be_loaded(name: str) -> None:
    assert callable(load(name))


def test_an_idle_manager_is_measured_to_ask_next_to_nothing() -> None:
    figures = load("idle")()
    assert [figure.met for figure in figures] == [True, True]
