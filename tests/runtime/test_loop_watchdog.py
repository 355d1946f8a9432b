from __future__ import annotations

import asyncio
from typing import cast

import pytest
from prometheus_client import Histogram
from structlog.testing import capture_logs

from hack.virtual_time import VirtualEventLoop
from upgrade_manager.runtime.healthz import Unhealthy
from upgrade_manager.runtime.loop_watchdog import LoopWatchdog


def new_lag() -> Histogram:
    return Histogram("lag", "Lag.", buckets=(1, 10), registry=None)


def block(seconds: float) -> None:
    cast("VirtualEventLoop", asyncio.get_running_loop()).jump(seconds)


async def test_lag_of_timers_is_measured_and_logged() -> None:
    lag = new_lag()
    with capture_logs() as lines:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(LoopWatchdog(lag=lag).run())
            await asyncio.sleep(0.9)
            block(3)
            await asyncio.sleep(0.5)
            task.cancel()
    samples = {(sample.name, sample.labels.get("le")): sample.value for sample in next(iter(lag.collect())).samples}
    assert samples["lag_bucket", "1.0"] == 1
    assert samples["lag_sum", None] == pytest.approx(2.9)
    assert [line["seconds"] for line in lines] == [2.9]


async def test_health_check_fails_when_timers_do_not_run() -> None:
    watchdog = LoopWatchdog(lag=new_lag())
    await watchdog.check()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(watchdog.run())
        await asyncio.sleep(10.1)
        await watchdog.check()
        block(60.9)
        with pytest.raises(Unhealthy, match="has not run its timers for 61 s"):
            await watchdog.check()
        task.cancel()
