"""Time that runs faster than real time."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from hack.fast_time import FastEventLoop, FastTime, patched_manager
from upgrade_manager.kube.clock import SystemClock

RATE = 1000.0


def test_manager_runs_in_it() -> None:
    start = datetime.now(UTC) - timedelta(hours=1)

    async def main() -> type:
        return type(asyncio.get_running_loop())

    with patched_manager(FastTime(rate=RATE, equal_at=start)):
        assert SystemClock().now() >= start + timedelta(hours=RATE)
        assert asyncio.run(main()) is FastEventLoop
    assert SystemClock().now() < start + timedelta(hours=RATE)


def test_it_is_earlier_than_real_time_before_they_are_equal() -> None:
    now = datetime.now(UTC)
    time = FastTime(rate=12.0, equal_at=now + timedelta(hours=1))
    assert now - timedelta(hours=11) <= time.now() < now - timedelta(hours=10)
