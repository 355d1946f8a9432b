"""Python's cycle collector, tuned for a process that keeps many parsed objects and makes thousands a second.

JSON has no cycles, so the collector finds nothing in it, but by default it walks all of it again and again: with 10,000
Pods in memory a full walk stops the event loop for 0.3 s, and the smaller ones cost more than the decoding itself.
Memory of replaced objects is freed by reference counts, at once, whatever is set here.
"""

from __future__ import annotations

import gc

#: Objects made before the young are walked (700 by default), and how many such walks before the next older ones are.
_THRESHOLDS = (50_000, 20, 100)


def relax() -> None:
    """Collect less often; call it once, when the process starts."""
    gc.set_threshold(*_THRESHOLDS)


def settle() -> None:
    """Collect once and take whatever lives out of later walks; call it when the caches have synced."""
    gc.collect()
    gc.freeze()
