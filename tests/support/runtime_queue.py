"""Work queues without jitter."""

from __future__ import annotations

from random import Random

from prometheus_client import CollectorRegistry

from upgrade_manager.runtime.metrics import Metrics
from upgrade_manager.runtime.workqueue import ItemExponentialFailureRateLimiter, WorkQueue


def new_limiter(
    *, base_delay: float = 1.0, max_delay: float = 60.0, jitter: float = 0.0
) -> ItemExponentialFailureRateLimiter:
    return ItemExponentialFailureRateLimiter(
        base_delay=base_delay, max_delay=max_delay, jitter=jitter, random=Random(1)
    )


def new_queue(*, max_delay: float = 60.0, metrics: Metrics | None = None) -> WorkQueue:
    limiter = new_limiter(max_delay=max_delay)
    return WorkQueue("plans", limiter=limiter, metrics=metrics or Metrics(CollectorRegistry()))
