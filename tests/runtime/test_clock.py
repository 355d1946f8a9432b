from __future__ import annotations

import asyncio
from datetime import UTC

from upgrade_manager.runtime.clock import SystemClock


async def test_the_calendar_is_aware_and_utc() -> None:
    assert SystemClock().now().tzinfo is UTC


async def test_monotonic_time_is_the_loops() -> None:
    clock = SystemClock()
    before = clock.monotonic()
    await asyncio.sleep(7200)
    assert clock.monotonic() - before == 7200
