from __future__ import annotations

import gc
from itertools import pairwise

import pytest

from upgrade_manager.cli import gc_tuning


@pytest.mark.full
def test_thresholds_are_raised_and_objects_frozen() -> None:
    before = gc.get_threshold()
    frozen = gc.get_freeze_count()
    # The tests' threshold is raised, too.
    gc.set_threshold(700)
    try:
        gc_tuning.collect_less_often()
        gc_tuning.freeze()
        assert gc.get_threshold()[0] > 700
        assert gc.get_freeze_count() > frozen
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def test_collections_of_a_large_list_are_short() -> None:
    """A collection of generation 1 passes over all objects since the previous one, and blocks the event loop."""
    before, kept, ends = gc.get_threshold(), list[list[int]](), [0]

    def collected(phase: str, info: dict[str, int]) -> None:
        if phase == "stop" and info["generation"] == 1:
            ends.append(len(kept))

    gc_tuning.collect_less_often()
    gc.callbacks.append(collected)
    try:
        for number in range(300_000):
            kept.append([number])
    finally:
        gc.callbacks.remove(collected)
        gc.set_threshold(*before)
    assert len(ends) > 3
    assert max(after - first for first, after in pairwise(ends)) <= 70_000
