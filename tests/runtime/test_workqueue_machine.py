"""The queue's invariants under any sequence of calls and any passing of time, against a model of what it promises."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from hack.virtual_time import VirtualEventLoop
from upgrade_manager.runtime.lanes import Priority
from upgrade_manager.runtime.rate_limiter import ItemExponential
from upgrade_manager.runtime.workqueue import ShutDown, WorkQueue

if TYPE_CHECKING:
    from collections.abc import Coroutine

KEYS = st.sampled_from("abcde")
PRIORITIES = st.sampled_from([Priority.LOW, Priority.NORMAL])
SECONDS = st.sampled_from([-1.0, 0.0, 1.0, 2.0, 5.0, 50.0])


class WorkQueueMachine(RuleBasedStateMachine):
    """The model: for each key whether it is in work, and the moment from which it needs work, if it does."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner(loop_factory=VirtualEventLoop)
        self.loop = self.runner.get_loop()
        self.queue: WorkQueue[str] = WorkQueue("machine", limiter=ItemExponential(base=1.0, cap=8.0), aging=10.0)
        self.in_work: set[str] = set()
        #: From when on a key needs work; absent when it does not.
        self.needs: dict[str, float] = {}
        self.failures: dict[str, int] = {}
        self.closed = False

    @initialize()
    def warm_up(self) -> None:
        self.run(asyncio.sleep(0))

    def run(self, step: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(step)

    def call(self, function: Any, *args: Any, **options: Any) -> Any:
        async def step() -> Any:
            return function(*args, **options)

        return self.run(step())

    def need(self, key: str, seconds: float) -> None:
        if not self.closed:
            due = self.loop.time() + max(0.0, seconds)
            self.needs[key] = min(due, self.needs.get(key, due))

    def due(self) -> set[str]:
        """Keys that a worker may get now."""
        return {key for key, due in self.needs.items() if due <= self.loop.time()} - self.in_work

    @rule(key=KEYS, priority=PRIORITIES)
    def add(self, key: str, priority: Priority) -> None:
        self.call(self.queue.add, key, priority=priority)
        self.need(key, 0)

    @rule(key=KEYS, seconds=SECONDS, priority=st.none() | PRIORITIES)
    def add_after(self, key: str, seconds: float, priority: Priority | None) -> None:
        self.call(self.queue.add_after, key, seconds, priority=priority)
        self.need(key, seconds)

    @rule(key=KEYS)
    def add_rate_limited(self, key: str) -> None:
        failures = self.failures.get(key, 0)
        self.failures[key] = failures + 1
        self.call(self.queue.add_rate_limited, key)
        self.need(key, min(2.0**failures, 8.0))

    @rule(key=KEYS)
    def forget(self, key: str) -> None:
        self.queue.forget(key)
        self.failures.pop(key, None)

    @rule(seconds=st.sampled_from([0.5, 1.0, 3.0, 10.0, 60.0]))
    def pass_time(self, seconds: float) -> None:
        self.run(asyncio.sleep(seconds))

    @rule()
    def get(self) -> None:
        expected = self.due()

        async def step() -> str | None:
            try:
                async with asyncio.timeout(0):
                    return await self.queue.get()
            except TimeoutError:
                return None

        if not expected and self.closed:
            try:
                self.run(self.queue.get())
            except ShutDown:
                return
            raise AssertionError("a closed and empty queue handed something out")
        key = self.run(step())
        if key is None:
            assert not expected, f"{expected} need work and nobody gets them"
            return
        assert key in expected
        del self.needs[key]
        self.in_work.add(key)

    @precondition(lambda self: self.in_work)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.in_work)))
        self.call(self.queue.done, key)
        self.in_work.remove(key)

    @precondition(lambda self: not self.closed and self.loop.time() > 20)
    @rule()
    def shut_down(self) -> None:
        self.call(self.queue.shut_down)
        self.closed = True
        now = self.loop.time()
        self.needs = {key: due for key, due in self.needs.items() if due <= now}

    @invariant()
    def it_knows_what_the_model_knows(self) -> None:
        now = self.call(self.queue.statistics)
        later = {key for key, due in self.needs.items() if due > self.loop.time()}
        assert now.ready == len(self.due())
        assert now.delayed == len(later)
        assert now.processing == len(self.in_work)
        assert all(self.queue.num_requeues(key) == self.failures.get(key, 0) for key in "abcde")

    @invariant()
    def its_sets_are_as_documented(self) -> None:
        queue = self.queue
        for key in "abcde":
            in_work, again = key in queue._processing, key in queue._again
            ready, delayed = key in queue._ready, key in queue._delays
            assert not (ready and (in_work or again or delayed))
            assert not (again and (not in_work or delayed))
        assert (queue._timer is None) is (len(queue._delays) == 0)

    def teardown(self) -> None:
        """Whatever happened, all that needs work gets it, each key once, within the time that it was promised."""
        for key in sorted(self.in_work):
            self.call(self.queue.done, key)
        expected = set(self.needs)
        self.in_work.clear()
        self.run(asyncio.sleep(100))
        got = []
        while self.call(self.queue.statistics).ready:
            got.append(self.run(self.queue.get()))
            self.call(self.queue.done, got[-1])
        assert sorted(got) == sorted(expected)
        self.runner.close()


TestWorkQueueMachine = WorkQueueMachine.TestCase
TestWorkQueueMachine.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
