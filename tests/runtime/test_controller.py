from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest
import structlog
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from tests.support.managers.runtime import new_queue
from upgrade_manager.kube.errors import Conflict
from upgrade_manager.runtime.controller import Controller
from upgrade_manager.runtime.healthz import Unhealthy
from upgrade_manager.runtime.metrics import RESULTS, Metrics
from upgrade_manager.runtime.result import Done, ReconcileTimeout, Requeue, RequeueAfter, Result, TerminalError

BUG = ValueError("x")


class Bench:
    """A controller whose reconcile returns or raises a list of results, then Done."""

    def __init__(self, *script: Result | BaseException, seconds: float = 0.0, seed: int = 1) -> None:
        self.metrics = Metrics(CollectorRegistry())
        self.queue = new_queue(metrics=self.metrics)
        self.script = list(script)
        self.seconds = seconds
        #: (start, key) of each reconcile.
        self.runs: list[tuple[float, str]] = []
        #: The logging context of each reconcile.
        self.contexts: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.is_leader = True
        self.controller = Controller(
            "plans",
            reconcile=self.reconcile,
            keys=lambda: self.keys,
            is_leader=lambda: self.is_leader,
            queue=self.queue,
            random=Random(seed),
            metrics=self.metrics,
        )

    async def reconcile(self, key: str) -> Result:
        self.runs.append((asyncio.get_running_loop().time(), key))
        structlog.contextvars.bind_contextvars(plan="p", phase="Init")
        self.contexts.append(structlog.contextvars.get_contextvars())
        await asyncio.sleep(self.seconds)
        step = self.script.pop(0) if self.script else Done()
        if isinstance(step, BaseException):
            raise step
        return step

    async def run(self, *keys: str, seconds: float = 3600) -> None:
        """Add the keys and cancel the controller after so many seconds."""
        try:
            async with asyncio.timeout(seconds), asyncio.TaskGroup() as group:
                group.create_task(self.controller.run())
                for key in keys:
                    self.queue.add(key)
        except TimeoutError:
            return

    def times(self) -> list[float]:
        return [time for time, _ in self.runs]

    def sample(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(f"controller_runtime_{name}", {"controller": "plans", **labels})

    def results(self) -> dict[str, float | None]:
        counts = {result: self.sample("reconcile_total", result=result) for result in RESULTS}
        return {result: count for result, count in counts.items() if count}


@pytest.mark.parametrize(
    ("script", "times", "results"),
    [
        pytest.param([Done()], [0], {"success": 1}, id="done"),
        pytest.param([RequeueAfter(60)], [0, 60], {"requeue_after": 1, "success": 1}, id="requeue after"),
        pytest.param([RequeueAfter(0)], [0, 0], {"requeue_after": 1, "success": 1}, id="requeue after zero"),
        pytest.param([Requeue()] * 3, [0, 1, 3, 7], {"requeue": 3, "success": 1}, id="requeue is rate limited"),
        pytest.param([BUG] * 3, [0, 1, 3, 7], {"error": 3, "success": 1}, id="errors are rate limited"),
        pytest.param([asyncio.CancelledError("x")], [0, 1], {"error": 1, "success": 1}, id="an inner cancellation"),
        pytest.param([TerminalError("no")], [0], {"error": 1}, id="a terminal error is not retried"),
        pytest.param([BUG, BUG, Done()], [0, 1, 3], {"error": 2, "success": 1}, id="done resets the delay"),
        pytest.param([BUG, BUG, TerminalError("no")], [0, 1, 3], {"error": 3}, id="a terminal error resets the delay"),
        pytest.param(
            [BUG, BUG, RequeueAfter(10), BUG],
            [0, 1, 3, 13, 14],
            {"error": 3, "requeue_after": 1, "success": 1},
            id="requeue after resets the delay",
        ),
    ],
)
async def test_result_decides_when_the_key_is_requeued(
    script: list[Result | BaseException], times: list[float], results: dict[str, float]
) -> None:
    bench = Bench(*script)
    await bench.run("a")
    assert bench.times() == times
    assert bench.queue.num_requeues("a") == 0
    assert bench.results() == results


async def test_errors_are_counted_by_kind() -> None:
    bench = Bench(BUG, Conflict("409"), OSError("net"), ReconcileTimeout("35 s"), TerminalError("no"))
    await bench.run("a")
    assert bench.sample("reconcile_errors_total") == 5
    assert bench.sample("terminal_reconcile_errors_total") == 1
    assert bench.sample("reconcile_panics_total") == 1
    assert bench.sample("reconcile_timeouts_total") == 1
    assert bench.sample("reconcile_time_seconds_count") == 5


async def test_all_keys_are_reconciled_every_ten_minutes() -> None:
    bench = Bench()
    bench.keys = ["a", "b"]
    await bench.run("a", seconds=1500)
    assert bench.runs == [(0, "a"), (600, "a"), (600, "b"), (1200, "a"), (1200, "b")]


async def test_changes_during_a_reconcile_cause_one_more() -> None:
    bench = Bench(seconds=5)
    async with asyncio.TaskGroup() as group:
        group.create_task(bench.run("a", seconds=60))
        for _ in range(4):
            await asyncio.sleep(1)
            bench.queue.add("a")
    assert bench.times() == [0, 5]


async def test_keys_are_reconciled_one_at_a_time() -> None:
    bench = Bench(seconds=10)
    async with asyncio.TaskGroup() as group:
        group.create_task(bench.run("a", "b", seconds=60))
        await asyncio.sleep(1)
        assert (bench.sample("active_workers"), bench.sample("max_concurrent_reconciles")) == (1, 1)
    assert bench.runs == [(0, "a"), (10, "b")]
    assert bench.sample("active_workers") == 0


async def test_cancelled_controller_finishes_short_reconciles() -> None:
    bench = Bench(seconds=0.2)
    await bench.run("a", "b", seconds=0.1)
    assert asyncio.get_running_loop().time() == pytest.approx(0.4)
    assert len(bench.runs) == 2


async def test_controller_without_the_lease_stops_at_once() -> None:
    bench = Bench(seconds=0.2)
    asyncio.get_running_loop().call_later(0.1, setattr, bench, "is_leader", False)  # noqa: FBT003
    await bench.run(*"abcdefg", seconds=0.1)
    assert asyncio.get_running_loop().time() == pytest.approx(0.1)
    assert bench.runs == [(0, "a")]
    bench.queue.add("h")
    assert bench.queue.longest_run() == 0


async def test_cancelled_controller_cancels_long_reconciles() -> None:
    bench = Bench(seconds=100)
    await bench.run("a", seconds=10)
    assert asyncio.get_running_loop().time() == 10.5
    assert bench.results() == {}
    assert bench.queue.longest_run() == 0
    assert bench.sample("active_workers") == 0


async def test_health_check_fails_while_a_reconcile_hangs() -> None:
    bench = Bench(seconds=100)
    async with asyncio.TaskGroup() as group:
        group.create_task(bench.run("a", seconds=200))
        await asyncio.sleep(60)
        await bench.controller.check()
        await asyncio.sleep(1)
        with pytest.raises(Unhealthy, match="a reconcile has been running for 61 s"):
            await bench.controller.check()
        await asyncio.sleep(40)
        await bench.controller.check()


async def test_log_lines_carry_the_context_of_their_reconcile() -> None:
    bench = Bench(TerminalError("no"), TerminalError("no"))
    structlog.contextvars.bind_contextvars(replica="r")
    with capture_logs(processors=[structlog.contextvars.merge_contextvars]) as lines:
        await bench.run("a", "b")
    first, second = bench.contexts
    assert (first["replica"], first["controller"], first["key"], second["key"]) == ("r", "plans", "a", "b")
    assert first["reconcile_id"] != second["reconcile_id"]
    assert len(str(first["reconcile_id"])) == 36
    assert [(line["plan"], line["phase"], line["reconcile_id"]) for line in lines] == [
        ("p", "Init", context["reconcile_id"]) for context in bench.contexts
    ]
    assert structlog.contextvars.get_contextvars() == {"replica": "r"}


async def test_reconcile_ids_repeat_with_the_same_seed() -> None:
    benches = [Bench(seed=7), Bench(seed=7)]
    for bench in benches:
        await bench.run("a")
    first, second = (bench.contexts[0]["reconcile_id"] for bench in benches)
    assert first == second


async def test_repeated_error_is_logged_once_with_traceback() -> None:
    bench = Bench(*[ValueError("same")] * 8)
    with capture_logs() as lines:
        await bench.run("a")
    assert [line["log_level"] for line in lines] == ["error", *["debug"] * 7, "info"]
    assert isinstance(lines[0]["exc_info"], ValueError)
    assert lines[7]["failures"] == 8
    assert lines[-1]["event"] == "reconcile recovered"


async def test_deletion_is_not_logged_as_a_recovery() -> None:
    bench = Bench(ValueError("same"), Done(is_deleted=True), ValueError("same"))
    bench.keys = ["a"]
    with capture_logs() as lines:
        await bench.run("a")
    assert [line["event"] for line in lines] == ["reconcile failed", "reconcile failed", "reconcile recovered"]


@pytest.mark.parametrize("result", [Requeue(), RequeueAfter(1, is_reconciled=False)], ids=["conflict", "stale cache"])
async def test_recovery_is_logged_only_after_a_whole_reconcile(result: Result) -> None:
    bench = Bench(ValueError("same"), result, ValueError("same"))
    with capture_logs() as lines:
        await bench.run("a")
    assert [line["event"] for line in lines] == ["reconcile failed", "reconcile failed again", "reconcile recovered"]
