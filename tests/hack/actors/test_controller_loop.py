from __future__ import annotations

import asyncio
from random import Random

import pytest

from hack.actors.controller_loop import ControllerLoop, RequeueAfter, Timers


async def test_change_during_reconcile_requeues_without_overlap() -> None:
    running, most, reconciles = 0, 0, 0

    async def reconcile(_: str) -> RequeueAfter:
        nonlocal running, most, reconciles
        running, reconciles = running + 1, reconciles + 1
        most = max(most, running)
        await asyncio.sleep(1)
        running -= 1
        return None

    loop: ControllerLoop[str] = ControllerLoop("test", reconcile, random=Random(1))
    task = asyncio.create_task(loop.run())
    loop.add("a")
    await asyncio.sleep(0.5)
    loop.add("a")
    loop.add("a")
    await asyncio.sleep(60)
    task.cancel()
    await asyncio.wait([task])
    assert (most, reconciles) == (1, 2)


async def test_bug_ends_the_loop() -> None:
    async def reconcile(key: str) -> RequeueAfter:
        raise ValueError(key)

    loop: ControllerLoop[str] = ControllerLoop("test", reconcile, random=Random(1))
    loop.add("bad")
    with pytest.raises(BaseExceptionGroup):
        await loop.run()


async def test_timer_starts_with_its_first_read() -> None:
    timers = Timers()
    assert timers.left("a", "x", 5) == 5
    await asyncio.sleep(2)
    assert timers.left("a", "x", 99) == 3
    await asyncio.sleep(9)
    assert timers.left("a", "x", 99) == 0
    timers.stop("a", "x")
    assert timers.left("a", "x", 1) == 1
    timers.forget("a")
    assert timers.left("a", "x", 7) == 7
