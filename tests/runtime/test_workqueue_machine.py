"""The work queue under any sequence of calls and any passage of time, compared to a model of its contract."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from hack.virtual_time import VirtualEventLoop
from tests.support.managers.runtime import new_queue
from upgrade_manager.runtime.workqueue import ShutDown

KEYS = st.sampled_from("abcde")
SECONDS = st.sampled_from([-1.0, 0.0, 1.0, 2.0, 5.0, 50.0])


class WorkQueueMachine(RuleBasedStateMachine):
    """The model: keys in processing, and since when each key needs work."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner(loop_factory=VirtualEventLoop)
        self.loop = self.runner.get_loop()
        self.queue = new_queue(max_delay=8.0)
        self.processing: set[str] = set()
        #: Loop time from which a key needs work.
        self.needs: dict[str, float] = {}
        self.failures: dict[str, int] = {}
        self.closed = False

    @initialize()
    def warm_up(self) -> None:
        self.run(asyncio.sleep(0))

    def run(self, step: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(step)

    def call(self, function: Any, *args: Any) -> Any:
        async def step() -> Any:
            return function(*args)

        return self.run(step())

    def need(self, key: str, seconds: float) -> None:
        if not self.closed:
            due = self.loop.time() + max(0.0, seconds)
            self.needs[key] = min(due, self.needs.get(key, due))

    def due(self) -> set[str]:
        """Return the keys that a worker may get now."""
        return {key for key, due in self.needs.items() if due <= self.loop.time()} - self.processing

    @rule(key=KEYS)
    def add(self, key: str) -> None:
        self.call(self.queue.add, key)
        self.need(key, 0)

    @rule(key=KEYS, seconds=SECONDS)
    def add_after(self, key: str, seconds: float) -> None:
        self.call(self.queue.add_after, key, seconds)
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

        async def step() -> str:
            async with asyncio.timeout(0):
                return await self.queue.get()

        if not expected:
            with pytest.raises(ShutDown if self.closed else TimeoutError):
                self.run(step())
            return
        key = self.run(step())
        assert key in expected
        del self.needs[key]
        self.processing.add(key)

    @precondition(lambda self: self.processing)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.processing)))
        self.call(self.queue.done, key)
        self.processing.remove(key)

    @precondition(lambda self: not self.closed and self.loop.time() > 20)
    @rule()
    def shut_down(self) -> None:
        self.call(self.queue.shut_down)
        self.closed = True
        now = self.loop.time()
        self.needs = {key: due for key, due in self.needs.items() if due <= now}

    @invariant()
    def sets_are_those_of_the_model(self) -> None:
        delayed = {key for key, due in self.needs.items() if due > self.loop.time()}
        assert set(self.queue._ready) == self.due()
        assert set(self.queue._timers) == delayed
        assert set(self.queue._processing) == self.processing
        assert self.queue._dirty == self.needs.keys() & self.processing - delayed
        assert all(self.queue.num_requeues(key) == self.failures.get(key, 0) for key in "abcde")

    def teardown(self) -> None:
        """Every key that needs work is handed out once, within its delay."""
        for key in sorted(self.processing):
            self.call(self.queue.done, key)
        expected = set(self.needs)
        self.processing.clear()
        self.run(asyncio.sleep(100))
        got = []
        while self.queue._ready:
            got.append(self.run(self.queue.get()))
            self.call(self.queue.done, got[-1])
        assert sorted(got) == sorted(expected)
        self.runner.close()


TestWorkQueueMachine = WorkQueueMachine.TestCase
TestWorkQueueMachine.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
