"""Table 3.1 of client-go's queue row by row, then the three departures."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from upgrade_manager.runtime.lanes import Priority
from upgrade_manager.runtime.rate_limiter import ItemExponential
from upgrade_manager.runtime.workqueue import ShutDown, WorkQueue

if TYPE_CHECKING:
    from collections.abc import Callable


def new_queue(*, aging: float = 30.0) -> WorkQueue[str]:
    return WorkQueue("test", limiter=ItemExponential(base=1.0, cap=60.0), aging=aging)


async def take(queue: WorkQueue[str]) -> str:
    """The next key, or an error when a worker would have to wait."""
    async with asyncio.timeout(0):
        return await queue.get()


async def is_idle(queue: WorkQueue[str]) -> bool:
    try:
        await take(queue)
    except TimeoutError:
        return True
    return False


async def run_all(queue: WorkQueue[str]) -> list[str]:
    keys = []
    while queue.statistics().ready:
        keys.append(await take(queue))
        queue.done(keys[-1])
    return keys


async def unknown(_queue: WorkQueue[str]) -> None:
    pass


async def queued(queue: WorkQueue[str]) -> None:
    queue.add("a")


async def processing(queue: WorkQueue[str]) -> None:
    queue.add("a")
    await take(queue)


async def processing_and_dirty(queue: WorkQueue[str]) -> None:
    await processing(queue)
    queue.add("a")


@pytest.mark.parametrize(
    ("state", "ready"),
    [
        pytest.param(unknown, 1, id="an unknown key is queued"),
        pytest.param(queued, 1, id="a queued key stays as it is"),
        pytest.param(processing, 0, id="a key in work is only marked"),
        pytest.param(processing_and_dirty, 0, id="a marked key stays marked"),
    ],
)
async def test_add(state: Callable[[WorkQueue[str]], asyncio.Future[None]], ready: int) -> None:
    queue = new_queue()
    await state(queue)
    queue.add("a")
    assert queue.statistics().ready == len(queue) == ready


@pytest.mark.parametrize(
    ("state", "runs"),
    [
        pytest.param(processing, [], id="a key in work is forgotten"),
        pytest.param(processing_and_dirty, ["a"], id="a marked key is queued again"),
    ],
)
async def test_done(state: Callable[[WorkQueue[str]], asyncio.Future[None]], runs: list[str]) -> None:
    queue = new_queue()
    await state(queue)
    queue.done("a")
    assert await run_all(queue) == runs


@pytest.mark.parametrize("state", [unknown, queued])
async def test_done_for_a_key_that_no_worker_has_is_a_mistake(
    state: Callable[[WorkQueue[str]], asyncio.Future[None]],
) -> None:
    queue = new_queue()
    await state(queue)
    with pytest.raises(ValueError, match="which no worker has"):
        queue.done("a")


async def test_a_key_marked_again_enters_at_the_tail() -> None:
    queue = new_queue()
    await processing_and_dirty(queue)
    queue.add("b")
    queue.done("a")
    assert await run_all(queue) == ["b", "a"]


async def test_any_number_of_adds_during_a_run_cost_one_further_run() -> None:
    queue = new_queue()
    await processing(queue)
    for _ in range(100):
        queue.add("a")
    queue.done("a")
    assert await run_all(queue) == ["a"]


async def test_a_waiting_worker_gets_a_key_as_soon_as_it_is_added() -> None:
    queue = new_queue()
    async with asyncio.TaskGroup() as group:
        worker = group.create_task(queue.get())
        await asyncio.sleep(1)
        assert queue.statistics().idle_workers == 1
        queue.add("a")
    assert worker.result() == "a"


async def test_a_delayed_key_becomes_ready_on_time() -> None:
    queue = new_queue()
    queue.add_after("a", 5)
    assert queue.statistics().delayed == 1
    assert await queue.get() == "a"
    assert asyncio.get_running_loop().time() == 5


async def test_the_earlier_of_two_times_wins() -> None:
    queue = new_queue()
    queue.add_after("a", 5)
    queue.add_after("a", 50)
    queue.add_after("b", 50)
    queue.add_after("b", 6)
    assert [await queue.get(), await queue.get()] == ["a", "b"]
    assert asyncio.get_running_loop().time() == 6
    assert queue.statistics().delayed == 0


async def test_an_immediate_add_absorbs_the_pending_one() -> None:
    queue = new_queue()
    queue.add_after("a", 5)
    queue.add("a")
    queue.done(await take(queue))
    await asyncio.sleep(10)
    assert await is_idle(queue)


@pytest.mark.parametrize("state", [queued, processing_and_dirty])
async def test_a_delayed_add_of_a_key_that_gets_work_anyway_is_absorbed(
    state: Callable[[WorkQueue[str]], asyncio.Future[None]],
) -> None:
    queue = new_queue()
    await state(queue)
    queue.add_after("a", 5)
    assert queue.statistics().delayed == 0


@pytest.mark.parametrize("seconds", [0, -3])
async def test_a_delay_that_is_over_is_none(seconds: float) -> None:
    queue = new_queue()
    queue.add_after("a", seconds)
    assert await run_all(queue) == ["a"]


async def test_a_delayed_key_that_comes_due_during_its_run_costs_one_further_run() -> None:
    queue = new_queue()
    await processing(queue)
    queue.add_after("a", 5)
    await asyncio.sleep(10)
    assert queue.statistics().ready == 0
    queue.done("a")
    assert await run_all(queue) == ["a"]


async def test_rate_limited_adds_wait_longer_each_time_until_forgotten() -> None:
    queue = new_queue()
    loop = asyncio.get_running_loop()
    waits = []
    for _ in range(3):
        started = loop.time()
        queue.add_rate_limited("a")
        queue.done(await queue.get())
        waits.append(loop.time() - started)
    assert waits == [1, 2, 4]
    assert queue.num_requeues("a") == 3
    queue.forget("a")
    assert queue.num_requeues("a") == 0


async def test_forgetting_leaves_what_is_pending() -> None:
    queue = new_queue()
    queue.add_rate_limited("a")
    queue.forget("a")
    assert await queue.get() == "a"


async def test_after_shut_down_workers_get_what_is_queued_and_then_the_stop_signal() -> None:
    queue = new_queue()
    await processing_and_dirty(queue)
    queue.add("b")
    queue.add_after("later", 5)
    queue.shut_down()
    queue.add("dropped")
    queue.add_after("dropped", 5)
    queue.add_rate_limited("dropped")
    assert queue.shutting_down
    assert await take(queue) == "b"
    queue.done("a")
    assert await take(queue) == "a"
    with pytest.raises(ShutDown):
        await take(queue)
    await asyncio.sleep(10)
    assert queue.statistics().delayed == 0


async def test_shut_down_wakes_every_waiting_worker() -> None:
    queue = new_queue()

    async def worker() -> None:
        with pytest.raises(ShutDown):
            await queue.get()

    async with asyncio.TaskGroup() as group:
        for _ in range(3):
            group.create_task(worker())
        await asyncio.sleep(1)
        queue.shut_down()


async def test_a_drain_of_an_empty_queue_is_over_at_once() -> None:
    assert await new_queue().shut_down_with_drain(5)


async def test_a_drain_waits_for_running_and_for_queued_work() -> None:
    queue = new_queue()
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
    assert queue.statistics().ready == queue.statistics().processing == 0


async def test_a_drain_gives_up_at_its_deadline() -> None:
    queue = new_queue()
    await processing(queue)
    assert not await queue.shut_down_with_drain(10)
    assert asyncio.get_running_loop().time() == 10
    queue.done("a")


async def test_a_second_shut_down_breaks_the_drain_and_a_second_drain_joins_it() -> None:
    queue = new_queue()
    await processing(queue)
    async with asyncio.TaskGroup() as group:
        drains = [group.create_task(queue.shut_down_with_drain(10)) for _ in range(2)]
        await asyncio.sleep(1)
        queue.shut_down()
        # A key that ends between the break and the drain's return changes nothing.
        queue.done("a")
    assert [drain.result() for drain in drains] == [False, False]
    assert asyncio.get_running_loop().time() == 1


async def test_low_work_is_overtaken_by_normal_work() -> None:
    queue = new_queue()
    queue.add("low", priority=Priority.LOW)
    queue.add("lower", priority=-1)
    queue.add("normal")
    assert await run_all(queue) == ["normal", "low", "lower"]


async def test_low_work_ages_and_is_never_starved_by_a_stream() -> None:
    queue = new_queue(aging=30)
    queue.add("low", priority=Priority.LOW)
    taken = []
    for second in range(60):
        # Two keys a second come, one a second is done: normal work never runs out.
        queue.add(f"{second}-first")
        queue.add(f"{second}-second")
        taken.append(await take(queue))
        queue.done(taken[-1])
        await asyncio.sleep(1)
    assert "low" not in taken
    rest = await run_all(queue)
    # It stands behind what was added up to its 30th second, before everything that came later.
    assert rest[:4] == ["30-first", "30-second", "low", "31-first"]


async def test_adding_again_raises_the_priority_and_never_lowers_it() -> None:
    queue = new_queue()
    queue.add("a", priority=Priority.LOW)
    queue.add("b")
    queue.add("a")
    queue.add("a", priority=Priority.LOW)
    queue.add("low", priority=Priority.LOW)
    assert await run_all(queue) == ["b", "a", "low"]


async def test_an_aged_key_keeps_its_place_when_raised() -> None:
    queue = new_queue(aging=30)
    queue.add("a", priority=Priority.LOW)
    await asyncio.sleep(31)
    queue.add("b")
    queue.add("a")
    assert await run_all(queue) == ["a", "b"]


@pytest.mark.parametrize(("pending", "immediate"), [(Priority.NORMAL, Priority.LOW), (Priority.LOW, Priority.NORMAL)])
async def test_absorbing_keeps_the_higher_priority(pending: Priority, immediate: Priority) -> None:
    queue = new_queue()
    queue.add("low", priority=Priority.LOW)
    queue.add_after("a", 5, priority=pending)
    queue.add("a", priority=immediate)
    assert await run_all(queue) == ["a", "low"]


async def test_a_retry_keeps_the_priority_of_its_run() -> None:
    queue = new_queue()
    queue.add("a", priority=Priority.LOW)
    await take(queue)
    queue.add_rate_limited("a")
    queue.done("a")
    await asyncio.sleep(1)
    queue.add("b")
    assert await run_all(queue) == ["b", "a"]


async def test_a_key_marked_low_and_then_normal_comes_back_normal() -> None:
    queue = new_queue()
    await processing(queue)
    queue.add("a", priority=Priority.LOW)
    queue.add("a")
    queue.add("low", priority=Priority.LOW)
    queue.done("a")
    assert await run_all(queue) == ["a", "low"]


async def test_a_cancelled_worker_passes_its_wake_on() -> None:
    queue = new_queue()
    async with asyncio.TaskGroup() as group:
        first = group.create_task(queue.get())
        second = group.create_task(queue.get())
        await asyncio.sleep(1)
        queue.add("a")
        first.cancel()
    assert second.result() == "a"


async def test_a_worker_cancelled_while_it_waits_leaves_no_trace() -> None:
    queue = new_queue()
    async with asyncio.TaskGroup() as group:
        first = group.create_task(queue.get())
        await asyncio.sleep(1)
        first.cancel()
    queue.add("a")
    assert await take(queue) == "a"
    assert queue.statistics().idle_workers == 0


async def test_a_key_added_just_as_its_only_worker_is_cancelled_stays_queued() -> None:
    queue = new_queue()
    async with asyncio.TaskGroup() as group:
        first = group.create_task(queue.get())
        await asyncio.sleep(1)
        first.cancel()
        queue.add("a")
    assert await run_all(queue) == ["a"]


async def test_a_woken_worker_waits_on_when_another_took_the_key() -> None:
    queue = new_queue()
    async with asyncio.TaskGroup() as group:
        slow = group.create_task(queue.get())
        await asyncio.sleep(1)
        queue.add("a")
        assert await queue.get() == "a"
        await asyncio.sleep(1)
        assert not slow.done()
        queue.add("b")
    assert slow.result() == "b"


async def test_statistics_tell_what_waits_and_what_hangs() -> None:
    queue = new_queue()
    for key in ("a", "b", "c"):
        queue.add(key)
    await asyncio.sleep(2)
    await take(queue)
    await asyncio.sleep(3)
    await take(queue)
    await asyncio.sleep(1)
    now = queue.statistics()
    assert (now.processing, now.ready, now.longest_run, now.unfinished, now.oldest_ready) == (2, 1, 4, 5, 6)
    assert new_queue().statistics().oldest_ready == 0


async def test_fifty_producers_and_ten_workers_never_share_a_key_and_lose_nothing() -> None:
    queue = new_queue()
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
