"""Settings of Python's cycle collector for a process that keeps many parsed objects.

main.py calls it before the imports, run.py after the first lists.

JSON has no cycles, yet a full collection of 10,000 cached Pods blocks the event loop for 0.3 s. Replaced objects are
freed by reference counting, which these settings do not affect.
"""

from __future__ import annotations

import gc

#: Allocations before a collection of generation 0 (700 by default), and collections before one of the next generation.
#: Every third collection is one of generation 1: of a million objects, as a large list has, it would block the event
#: loop for 0.2 s, and of 60,000 it does for 14 ms. A full one follows 100 million allocations.
_THRESHOLDS = (20_000, 1, 1_700)


def collect_less_often() -> None:
    """Raise the thresholds; call it when the process starts."""
    gc.set_threshold(*_THRESHOLDS)


def freeze() -> None:
    """Collect once and exclude all living objects from later collections; call it when the caches have synced."""
    gc.collect()
    gc.freeze()
