"""Notices when something blocks the event loop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from upgrade_manager.kube.clock import loop_time
from upgrade_manager.runtime.healthz import Unhealthy

if TYPE_CHECKING:
    from prometheus_client import Histogram

#: Seconds between two looks.
PERIOD = 0.5
#: Seconds of lateness from which a stall is worth a line.
_TOLD = 1.0
#: Seconds without a look after which the loop counts as hung (observability.md, probes).
HUNG_AFTER = 60.0


class LoopLag:
    """Sleeps, and observes by how much the loop woke it too late; `check` fails when it was not woken at all."""

    def __init__(self, *, lag: Histogram) -> None:
        self._lag = lag
        self._log = structlog.get_logger(__name__)
        #: Loop time of the last look; None before the first.
        self._beat: float | None = None

    async def run(self) -> None:
        """Look until cancelled."""
        loop = asyncio.get_running_loop()
        self._beat = loop.time()
        while True:
            await asyncio.sleep(PERIOD)
            now = loop.time()
            late = max(0.0, now - self._beat - PERIOD)
            self._beat = now
            self._lag.observe(late)
            if late > _TOLD:
                self._log.warning("event loop stalled", seconds=round(late, 3))

    async def check(self) -> None:
        """Liveness: raises Unhealthy when the last look is too long ago."""
        if self._beat is None:
            return
        age = loop_time() - self._beat
        if age > HUNG_AFTER:
            raise Unhealthy(f"the event loop has not run its timers for {age:.0f} s")
