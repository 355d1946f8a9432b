from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from hack.bench.stalls import WORTH, WatchedSelector

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def selector() -> Iterator[WatchedSelector]:
    made = WatchedSelector()
    yield made
    made.close()


def spin(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def test_a_step_that_keeps_the_loop_busy_is_taken_down_and_a_wait_is_not(selector: WatchedSelector) -> None:
    async def work() -> None:
        await asyncio.sleep(3 * WORTH)
        selector.steps.clear()
        spin(2 * WORTH)
        await asyncio.sleep(3 * WORTH)

    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector)) as runner:
        runner.run(work())
    longest = max(selector.steps, key=lambda step: step[2])
    assert longest[1] >= longest[2] >= 2 * WORTH
    assert sum(processor for _, _, processor in selector.steps) < 4 * WORTH
