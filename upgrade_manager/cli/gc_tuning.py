"""Settings of Python's cycle collector for a process that keeps many parsed objects.

JSON has no cycles, yet a full collection of 10,000 cached Pods blocks the event loop for 0.3 s. Replaced objects are
freed by reference counts, whatever is set here.
"""

from __future__ import annotations

import gc

#: Allocations before a young collection (700 by default), and how many collections before the next older generation's.
_THRESHOLDS = (50_000, 20, 100)


def collect_less_often() -> None:
    """Raise the thresholds; call it when the process starts."""
    gc.set_threshold(*_THRESHOLDS)


def freeze() -> None:
    """Collect once and exclude all living objects from later collections; call it when the caches have synced."""
    gc.collect()
    gc.freeze()
