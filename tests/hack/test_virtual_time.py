from __future__ import annotations

import asyncio
import threading

import pytest

from hack import virtual_time
from hack.virtual_time import StuckError, run


def test_endless_wait_raises_stuck_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hack.virtual_time.STUCK_AFTER", 0.01)
    with pytest.raises(StuckError, match="nothing is scheduled"):
        run(asyncio.Event().wait())


def test_thread_may_take_longer_than_an_endless_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    done, polls = threading.Event(), []
    wait = virtual_time._JumpingSelector._await_thread

    def counted(selector: virtual_time._JumpingSelector) -> object:
        polls.append(selector)
        if len(polls) == 3:
            done.set()
            monkeypatch.undo()
        return wait(selector)

    monkeypatch.setattr(virtual_time, "STUCK_AFTER", 0.0)
    monkeypatch.setattr(virtual_time._JumpingSelector, "_await_thread", counted)
    assert run(asyncio.to_thread(done.wait))


async def test_time_stands_still_during_a_thread() -> None:
    loop = asyncio.get_running_loop()
    started = loop.time()
    done = threading.Event()
    async with asyncio.timeout(0.5):
        work = asyncio.create_task(asyncio.to_thread(done.wait))
        await asyncio.sleep(0)
        done.set()
        assert await work
    assert loop.time() - started < 0.5
