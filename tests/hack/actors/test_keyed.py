from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from random import Random
from typing import TYPE_CHECKING

import pytest

from hack.actors.keyed import KeyedLoop, Later
from hack.actors.timers import Timers
from upgrade_manager.kube.errors import Conflict

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable


@asynccontextmanager
async def looping(look: Callable[[str], Awaitable[Later]], *, workers: int = 8) -> AsyncIterator[KeyedLoop[str]]:
    loop: KeyedLoop[str] = KeyedLoop("test", look, random=Random(1), workers=workers)
    task = asyncio.create_task(loop.run())
    yield loop
    task.cancel()
    with pytest.raises((asyncio.CancelledError, BaseExceptionGroup)):
        await task


def clock() -> float:
    return round(asyncio.get_running_loop().time(), 3)


async def test_a_key_is_looked_at_when_it_is_due_and_again_when_it_says_so() -> None:
    seen: list[float] = []

    async def look(_: str) -> Later:
        seen.append(clock())
        return 2.0 if len(seen) < 3 else None

    async with looping(look) as loop:
        loop.add("a", after=1)
        await asyncio.sleep(60)
    assert seen == [1, 3, 5]


async def test_sooner_wins_and_later_does_not_count() -> None:
    seen: list[float] = []

    async def look(_: str) -> Later:
        seen.append(clock())
        return None

    async with looping(look) as loop:
        loop.add("a", after=9)
        loop.add("a", after=3)
        loop.add("a", after=5)
        await asyncio.sleep(60)
    assert seen == [3]


async def test_a_key_that_changes_while_it_is_looked_at_is_looked_at_again_but_never_twice_at_once() -> None:
    running, most, looks = 0, 0, 0

    async def look(_: str) -> Later:
        nonlocal running, most, looks
        running, looks = running + 1, looks + 1
        most = max(most, running)
        await asyncio.sleep(1)
        running -= 1
        return None

    async with looping(look) as loop:
        loop.add("a")
        await asyncio.sleep(0.5)
        loop.add("a")
        loop.add("a")
        await asyncio.sleep(60)
    assert (most, looks) == (1, 2)


async def test_no_more_keys_than_workers_are_looked_at_at_once() -> None:
    ends: list[float] = []

    async def look(_: str) -> Later:
        await asyncio.sleep(1)
        ends.append(clock())
        return None

    async with looping(look, workers=2) as loop:
        for key in "abcd":
            loop.add(key)
        await asyncio.sleep(60)
    assert ends == [1, 1, 2, 2]


async def test_a_refusal_is_tried_again_and_a_mistake_is_not() -> None:
    tries = 0

    async def look(key: str) -> Later:
        nonlocal tries
        tries += 1
        if key == "bad":
            raise ValueError(key)
        if tries < 4:
            raise Conflict("somebody was first")
        return None

    loop: KeyedLoop[str] = KeyedLoop("test", look, random=Random(1))
    async with looping(look) as good:
        good.add("good")
        await asyncio.sleep(10)
        assert tries == 4
    loop.add("bad")
    with pytest.raises(BaseExceptionGroup):
        await loop.run()


async def test_a_timer_runs_from_the_first_question_on() -> None:
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
