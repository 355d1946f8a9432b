from __future__ import annotations

import gc

from upgrade_manager.cli import gc_tuning


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
