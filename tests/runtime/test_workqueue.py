"""Order, waiting, shutdown and workers of the queue; test_workqueue_machine.py compares its sets with a model."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.managers.runtime import new_limiter, new_queue
from upgrade_manager.runtime.workqueue import ShutDown, WorkQueue


@pytest.fixture
def queue() -> WorkQueue:
    return new_queue()


async def take(queue: WorkQueue) -> str:
    """Return the next key. Raises TimeoutError when none is ready."""
    async with asyncio.timeout(0):
        return await queue.get()


async def run_all(queue: WorkQueue) -> list[str]:
    """Process all ready keys and return them."""
    keys = []
    while queue._ready:
        keys.append(await take(queue))
        queue.done(keys[-1])
    return keys


async def processing(queue: WorkQueue) -> None:
    queue.add("a")
    await take(queue)


async def processing_and_dirty(queue: WorkQueue) -> None:
    await processing(queue)
    for _ in range(100):
        queue.add("a")


async def test_done_of_a_key_not_in_processing_raises(queue: WorkQueue) -> None:
    for _ in range(2):
        with pytest.raises(KeyError):
            queue.done("a")
        queue.add("a")


async def test_dirty_key_is_requeued_at_the_tail(queue: WorkQueue) -> None:
    await processing_and_dirty(queue)
    queue.add("b")
    queue.done("a")
    assert await run_all(queue) == ["b", "a"]


async def test_earlier_of_two_delayed_adds_wins(queue: WorkQueue) -> None:
    queue.add_after("a", 5)
    queue.add_after("a", 50)
    queue.add_after("b", 50)
    queue.add_after("b", 6)
    assert [await queue.get(), await queue.get()] == ["a", "b"]
    assert asyncio.get_running_loop().time() == 6
    assert queue._timers == {}


async def test_after_shutdown_only_queued_keys_are_handed_out(queue: WorkQueue) -> None:
    await processing_and_dirty(queue)
    queue.add("b")
    queue.add_after("later", 5)
    queue.shut_down()
    queue.add("dropped")
    queue.add_after("dropped", 5)
    queue.add_rate_limited("dropped")
    assert await take(queue) == "b"
    queue.done("a")
    assert await take(queue) == "a"
    await asyncio.sleep(10)
    with pytest.raises(ShutDown):
        await take(queue)


async def test_shutdown_wakes_every_waiting_worker(queue: WorkQueue) -> None:

    async def worker() -> None:
        with pytest.raises(ShutDown):
            await queue.get()

    async with asyncio.TaskGroup() as group:
        for _ in range(3):
            group.create_task(worker())
        await asyncio.sleep(1)
        queue.shut_down()


async def test_drain_waits_for_running_and_queued_keys(queue: WorkQueue) -> None:
    await processing_and_dirty(queue)
    queue.add("b")

    async def worker() -> None:
        await asyncio.sleep(1)
        queue.done("a")
        for _ in range(2):
            key = await queue.get()
            await asyncio.sleep(1)
            queue.done(key)

    async with asyncio.TaskGroup() as group:
        group.create_task(worker())
        assert await queue.shut_down_with_drain(10)
    assert asyncio.get_running_loop().time() == 3


@pytest.mark.parametrize("is_empty", [True, False])
async def test_drain_ends_when_empty_or_at_its_time_limit(queue: WorkQueue, *, is_empty: bool) -> None:
    if not is_empty:
        await processing(queue)
    assert await queue.shut_down_with_drain(10) is is_empty
    assert asyncio.get_running_loop().time() == (0 if is_empty else 10)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("adds_first", [False, True])
async def test_key_of_a_cancelled_worker_goes_to_another(queue: WorkQueue, workers: int, *, adds_first: bool) -> None:
    async with asyncio.TaskGroup() as group:
        first, *others = [group.create_task(queue.get()) for _ in range(workers)]
        await asyncio.sleep(1)
        if adds_first:
            queue.add("a")
        first.cancel()
        queue.add("a")
    assert [*(other.result() for other in others), *await run_all(queue)] == ["a"]


async def test_woken_worker_waits_on_when_the_key_is_taken(queue: WorkQueue) -> None:
    async with asyncio.TaskGroup() as group:
        slow = group.create_task(queue.get())
        await asyncio.sleep(1)
        queue.add("a")
        assert await queue.get() == "a"
        await asyncio.sleep(1)
        assert not slow.done()
        queue.add("b")
    assert slow.result() == "b"


async def test_longest_run_is_that_of_the_oldest_key(queue: WorkQueue) -> None:
    assert queue.longest_run() == 0
    for key in ("a", "b"):
        queue.add(key)
        await take(queue)
        await asyncio.sleep(3)
    assert queue.longest_run() == 6


async def test_many_workers_never_share_a_key_or_miss_a_change(queue: WorkQueue) -> None:
    working: set[str] = set()
    versions = {f"key-{n}": 0 for n in range(50)}
    seen: dict[str, int] = {}

    async def produce(key: str) -> None:
        for _ in range(30):
            versions[key] += 1
            queue.add(key)
            await asyncio.sleep(0.01)

    async def consume() -> None:
        while True:
            try:
                key = await queue.get()
            except ShutDown:
                return
            assert key not in working
            working.add(key)
            seen[key] = versions[key]
            await asyncio.sleep(0.007)
            working.remove(key)
            queue.done(key)

    async with asyncio.TaskGroup() as group:
        for _ in range(10):
            group.create_task(consume())
        async with asyncio.TaskGroup() as producers:
            for key in versions:
                producers.create_task(produce(key))
        assert await queue.shut_down_with_drain(10)
    assert seen == versions


def test_delays_double_up_to_the_maximum() -> None:
    limiter = new_limiter(base_delay=0.005, max_delay=1000)
    delays = [limiter.when("a") for _ in range(2000)]
    assert delays[:4] == [0.005, 0.01, 0.02, 0.04]
    assert sum(delays[:10]) == pytest.approx(5, abs=0.2)
    assert delays[17] < 1000
    assert set(delays[18:]) == {1000}


def test_jitter_spreads_a_delay_over_its_factor() -> None:
    limiter = new_limiter(base_delay=10, max_delay=10, jitter=0.5)
    delays = [limiter.when(str(n)) for n in range(200)]
    assert all(10 <= delay < 15 for delay in delays)
    assert max(delays) - min(delays) > 4
