from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from random import Random
from typing import TYPE_CHECKING

import pytest

from hack.actors.controller_loop import ControllerLoop, RequeueAfter, Timers
from upgrade_manager.kube.errors import Conflict

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable


@asynccontextmanager
async def looping(
    reconcile: Callable[[str], Awaitable[RequeueAfter]], *, workers: int = 8
) -> AsyncIterator[ControllerLoop[str]]:
    loop: ControllerLoop[str] = ControllerLoop("test", reconcile, random=Random(1), workers=workers)
    task = asyncio.create_task(loop.run())
    yield loop
    task.cancel()
    with pytest.raises((asyncio.CancelledError, BaseExceptionGroup)):
        await task


def clock() -> float:
    return round(asyncio.get_running_loop().time(), 3)


async def test_key_is_reconciled_when_due_and_when_requeued() -> None:
    seen: list[float] = []

    async def reconcile(_: str) -> RequeueAfter:
        seen.append(clock())
        return 2.0 if len(seen) < 3 else None

    async with looping(reconcile) as loop:
        loop.add("a", after=1)
        await asyncio.sleep(60)
    assert seen == [1, 3, 5]


async def test_change_during_reconcile_requeues_without_overlap() -> None:
    running, most, reconciles = 0, 0, 0

    async def reconcile(_: str) -> RequeueAfter:
        nonlocal running, most, reconciles
        running, reconciles = running + 1, reconciles + 1
        most = max(most, running)
        await asyncio.sleep(1)
        running -= 1
        return None

    async with looping(reconcile) as loop:
        loop.add("a")
        await asyncio.sleep(0.5)
        loop.add("a")
        loop.add("a")
        await asyncio.sleep(60)
    assert (most, reconciles) == (1, 2)


async def test_kube_error_is_retried_and_bug_ends_the_loop() -> None:
    tries = 0

    async def reconcile(key: str) -> RequeueAfter:
        nonlocal tries
        tries += 1
        if key == "bad":
            raise ValueError(key)
        if tries < 4:
            raise Conflict("the object has been modified")
        return None

    loop: ControllerLoop[str] = ControllerLoop("test", reconcile, random=Random(1))
    async with looping(reconcile) as good:
        good.add("good")
        await asyncio.sleep(10)
        assert tries == 4
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
