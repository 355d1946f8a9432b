"""Detects code that blocks the event loop.

cli/application.py runs it, as a check of `/healthz`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from upgrade_manager.kube.clock import loop_time
from upgrade_manager.runtime.healthz import HANG_TIMEOUT, Unhealthy

if TYPE_CHECKING:
    from prometheus_client import Histogram

#: Seconds between two measurements.
INTERVAL = 0.5
#: Seconds of lag above which a measurement is logged.
LOGGED_LAG = 1.0


class LoopWatchdog:
    """Measures by how much the event loop's timers are late."""

    def __init__(self, *, lag: Histogram) -> None:
        self._lag = lag
        self._log = structlog.get_logger(__name__)
        #: Loop time of the last measurement; None before the first.
        self._measured_at: float | None = None

    async def run(self) -> None:
        """Measure until cancelled."""
        self._measured_at = loop_time()
        while True:
            await asyncio.sleep(INTERVAL)
            now = loop_time()
            lag = max(0.0, now - self._measured_at - INTERVAL)
            self._measured_at = now
            self._lag.observe(lag)
            if lag > LOGGED_LAG:
                self._log.warning("event loop blocked", seconds=round(lag, 3))

    async def check(self) -> None:
        """Liveness: raise Unhealthy when the last measurement is too long ago."""
        if self._measured_at is None:
            return
        age = loop_time() - self._measured_at
        if age > HANG_TIMEOUT:
            raise Unhealthy(f"the event loop has not run its timers for {age:.0f} s")
