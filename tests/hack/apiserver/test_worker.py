"""The queue under the server's own controllers."""

from __future__ import annotations

import asyncio

from hack.apiserver.status import bad_request
from hack.apiserver.worker import RETRY_SECONDS, Worker


async def test_each_thing_is_looked_at_once_in_order_and_a_refused_one_again_later() -> None:
    loop = asyncio.get_running_loop()
    seen: list[tuple[str, float]] = []

    async def look(thing: str) -> None:
        seen.append((thing, loop.time()))
        if thing == "refused" and len(seen) < 4:
            raise bad_request("not now")

    worker: Worker[str] = Worker(look)
    for thing in ("b", "refused", "b", "a"):
        worker.add(thing)
    running = asyncio.create_task(worker.run())
    await asyncio.sleep(10)
    worker.add("b")
    await asyncio.sleep(1)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert seen == [("b", 0), ("refused", 0), ("a", 0), ("refused", RETRY_SECONDS), ("b", 10)]
