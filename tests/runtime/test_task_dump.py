from __future__ import annotations

import asyncio

from structlog.testing import capture_logs

from upgrade_manager.runtime.task_dump import log_tasks


async def outer(event: asyncio.Event) -> None:
    await inner(event)


async def inner(event: asyncio.Event) -> None:
    await event.wait()


async def test_each_task_is_logged_with_the_calls_it_waits_in() -> None:
    event = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(outer(event), name="waiting")
        await asyncio.sleep(0)
        with capture_logs() as lines:
            log_tasks()
        event.set()
    stacks = {line["name"]: [call.split() for call in line["stack"]] for line in lines}
    places, calls = zip(*stacks["waiting"], strict=True)
    assert [place.rpartition(":")[0] for place in places] == [__name__, __name__, "asyncio.locks"]
    assert calls == ("outer", "inner", "Event.wait")
    assert {line["event"] for line in lines} == {"task"}
