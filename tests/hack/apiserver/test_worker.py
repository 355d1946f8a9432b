"""The work queue of the server's controllers."""

from __future__ import annotations

import asyncio

from hack.apiserver.status import bad_request
from hack.apiserver.worker import RETRY_SECONDS, Worker


async def test_queue_deduplicates_and_retries_refused_keys() -> None:
    loop = asyncio.get_running_loop()
    seen: list[tuple[str, float]] = []

    async def reconcile(key: str) -> None:
        seen.append((key, loop.time()))
        if key == "refused" and len(seen) < 4:
            raise bad_request("not now")

    worker: Worker[str] = Worker(reconcile)
    for key in ("b", "refused", "b", "a"):
        worker.add(key)
    running = asyncio.create_task(worker.run())
    await asyncio.sleep(10)
    worker.add("b")
    await asyncio.sleep(1)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert seen == [("b", 0), ("refused", 0), ("a", 0), ("refused", RETRY_SECONDS), ("b", 10)]
