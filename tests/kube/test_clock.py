from __future__ import annotations

import asyncio
from datetime import UTC

from upgrade_manager.kube.clock import SystemClock, loop_time


async def test_calendar_is_in_utc() -> None:
    assert SystemClock().now().tzinfo is UTC


async def test_monotonic_time_is_that_of_the_loop() -> None:
    clock = SystemClock()
    before = clock.monotonic()
    await asyncio.sleep(7200)
    assert clock.monotonic() - before == loop_time() - before == 7200
