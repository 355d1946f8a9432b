from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING

import pytest
import structlog
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from upgrade_manager.kube.errors import Conflict, Forbidden
from upgrade_manager.runtime.controller import Controller, Done, Label, Requeue, RequeueAfter, TerminalError
from upgrade_manager.runtime.healthz import Unhealthy
from upgrade_manager.runtime.metrics import Metrics
from upgrade_manager.runtime.rate_limiter import ItemExponential
from upgrade_manager.runtime.workqueue import WorkQueue

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from upgrade_manager.runtime.controller import Result

    Reconcile = Callable[[str], Awaitable[Result]]


class Bench:
    """A controller whose reconcile plays a list of outcomes and errors, then says Done."""

    def __init__(self, *script: Result | BaseException, takes: float = 0.0, **options: float) -> None:
        self.metrics = Metrics(CollectorRegistry())
        self.queue: WorkQueue[str] = WorkQueue(
            "plans", limiter=ItemExponential(base=1, cap=60), metrics=self.metrics.queue("plans")
        )
        self.script = list(script)
        self.takes = takes
        #: (time, key, failures counted before it)
        self.runs: list[tuple[float, str, int]] = []
        self.controller = Controller(
            "plans",
            reconcile=self.reconcile,
            queue=self.queue,
            random=Random(1),
            metrics=self.metrics.controller("plans"),
            timeout=options.get("timeout"),
            workers=int(options.get("workers", 1)),
            drain=options.get("drain", 0.5),
        )

    async def reconcile(self, key: str) -> Result:
        self.runs.append((asyncio.get_running_loop().time(), key, self.queue.num_requeues(key)))
        await asyncio.sleep(self.takes)
        step = self.script.pop(0) if self.script else Done()
        if isinstance(step, BaseException):
            raise step
        return step

    async def play(self, *keys: str, seconds: float = 3600) -> None:
        """Add the keys and let the controller run."""
        try:
            async with asyncio.timeout(seconds), asyncio.TaskGroup() as group:
                group.create_task(self.controller.run())
                for key in keys:
                    self.queue.add(key)
        except TimeoutError:
            return

    def times(self) -> list[float]:
        return [time for time, _, _ in self.runs]

    def sample(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(f"controller_runtime_{name}", {"controller": "plans", **labels})

    def results(self) -> dict[str, float | None]:
        counts = {result.value: self.sample("reconcile_total", result=result.value) for result in Label}
        return {result: count for result, count in counts.items() if count}


@pytest.mark.parametrize(
    ("script", "times", "failures", "results"),
    [
        pytest.param([Done()], [0], 0, {"success": 1}, id="a success ends it"),
        pytest.param([RequeueAfter(60)], [0, 60], 0, {"requeue_after": 1, "success": 1}, id="waits exactly so long"),
        pytest.param([RequeueAfter(0)], [0, 0], 0, {"requeue_after": 1, "success": 1}, id="zero seconds is at once"),
        pytest.param([Requeue()] * 3, [0, 1, 3, 7], 0, {"requeue": 3, "success": 1}, id="requeue is rate limited"),
        pytest.param([ValueError("x")] * 3, [0, 1, 3, 7], 0, {"error": 3, "success": 1}, id="errors back off"),
        pytest.param([TerminalError("no")], [0], 0, {"error": 1}, id="a terminal error is not tried again"),
        pytest.param(
            [ValueError("x"), ValueError("x"), Done()], [0, 1, 3], 0, {"error": 2, "success": 1}, id="success forgets"
        ),
        pytest.param(
            [ValueError("x"), ValueError("x"), TerminalError("no")], [0, 1, 3], 0, {"error": 3}, id="terminal forgets"
        ),
        pytest.param(
            [ValueError("x"), ValueError("x"), RequeueAfter(10), ValueError("x")],
            [0, 1, 3, 13, 14],
            0,
            {"error": 3, "requeue_after": 1, "success": 1},
            id="requeue after forgets first",
        ),
    ],
)
async def test_outcomes(
    script: list[Result | BaseException], times: list[float], failures: int, results: dict[str, float]
) -> None:
    bench = Bench(*script)
    await bench.play("a")
    assert bench.times() == times
    assert bench.queue.num_requeues("a") == failures
    assert bench.results() == results


async def test_errors_are_counted_by_nature() -> None:
    bench = Bench(ValueError("bug"), Conflict("409"), OSError("net"), TerminalError("no"))
    await bench.play("a")
    assert bench.sample("reconcile_errors_total") == 4
    assert bench.sample("terminal_reconcile_errors_total") == 1
    assert bench.sample("reconcile_panics_total") == 1
    assert bench.sample("reconcile_timeouts_total") == 0
    assert bench.sample("reconcile_time_seconds_count") == 4


async def test_every_series_exists_at_zero_before_the_first_run() -> None:
    bench = Bench()
    for name in ("reconcile_errors_total", "terminal_reconcile_errors_total", "reconcile_panics_total"):
        assert bench.sample(name) == 0
    for result in ("success", "error", "requeue", "requeue_after"):
        assert bench.sample("reconcile_total", result=result) == 0
    assert bench.sample("active_workers") == 0
    assert bench.sample("max_concurrent_reconciles") == 1


async def test_a_run_that_takes_too_long_is_cancelled_and_counted() -> None:
    bench = Bench(takes=100, timeout=10.0)
    await bench.play("a", seconds=12)
    assert bench.times() == [0, 11]
    assert bench.sample("reconcile_timeouts_total") == 1


async def test_a_time_out_of_the_reconcile_itself_is_not_counted_as_one() -> None:
    bench = Bench(TimeoutError("inner"), timeout=10.0)
    await bench.play("a")
    assert bench.sample("reconcile_timeouts_total") == 0
    assert bench.sample("reconcile_errors_total") == 1


async def test_a_change_during_a_run_leads_to_one_more() -> None:
    bench = Bench(takes=5)

    async def change() -> None:
        for _ in range(4):
            await asyncio.sleep(1)
            bench.queue.add("a")

    async with asyncio.TaskGroup() as group:
        group.create_task(bench.play("a", seconds=60))
        group.create_task(change())
    assert bench.times() == [0, 5]


async def test_workers_share_the_keys_but_never_one() -> None:
    bench = Bench(takes=10, workers=3)
    async with asyncio.TaskGroup() as group:
        group.create_task(bench.play("a", "b", "c", "d", seconds=60))
        await asyncio.sleep(1)
        bench.queue.add("a")
        assert bench.sample("active_workers") == 3
    assert [(time, key) for time, key, _ in bench.runs] == [(0, "a"), (0, "b"), (0, "c"), (10, "d"), (10, "a")]


async def test_a_wait_that_somebody_else_cancelled_is_a_failure_and_the_worker_lives_on() -> None:
    bench = Bench(asyncio.CancelledError("inner"))
    await bench.play("a")
    assert bench.times() == [0, 1]
    assert bench.results() == {"error": 1, "success": 1}


async def test_cancelling_the_controller_lets_a_short_run_end_and_the_queued_work_too() -> None:
    bench = Bench(takes=0.2)
    await bench.play("a", "b", seconds=0.1)
    assert asyncio.get_running_loop().time() == pytest.approx(0.4)
    assert len(bench.runs) == 2


async def test_cancelling_the_controller_cancels_a_run_that_takes_longer() -> None:
    bench = Bench(takes=100)
    await bench.play("a", seconds=10)
    assert asyncio.get_running_loop().time() == 10.5
    assert bench.results() == {}
    assert bench.queue.statistics().processing == 0
    assert bench.sample("active_workers") == 0


async def test_a_controller_ends_when_its_queue_is_shut_down() -> None:
    bench = Bench()
    bench.queue.add("a")
    bench.queue.shut_down()
    await bench.controller.run()
    assert len(bench.runs) == 1


async def test_health_fails_while_a_run_hangs() -> None:
    bench = Bench(takes=100)
    async with asyncio.TaskGroup() as group:
        group.create_task(bench.play("a", seconds=200))
        await asyncio.sleep(60)
        await bench.controller.check()
        await asyncio.sleep(1)
        with pytest.raises(Unhealthy, match="a reconcile has been running for 61 s"):
            await bench.controller.check()
        await asyncio.sleep(40)
        await bench.controller.check()


async def test_every_line_of_a_run_carries_its_id_and_what_the_run_bound() -> None:
    seen: list[dict[str, object]] = []
    queue: WorkQueue[str] = WorkQueue("plans", limiter=ItemExponential())

    async def reconcile(_key: str) -> Result:
        structlog.contextvars.bind_contextvars(plan="p", phase="Init")
        seen.append(structlog.contextvars.get_contextvars())
        raise TerminalError("no")

    controller = Controller("plans", reconcile=reconcile, queue=queue, random=Random(1))
    queue.add("a")
    queue.add("b")
    queue.shut_down()
    structlog.contextvars.bind_contextvars(replica="r")
    with capture_logs(processors=[structlog.contextvars.merge_contextvars]) as lines:
        await controller.run()
    assert seen[0]["replica"] == "r"
    assert (seen[0]["controller"], seen[0]["key"], seen[1]["key"]) == ("plans", "a", "b")
    assert seen[0]["reconcile_id"] != seen[1]["reconcile_id"]
    assert len(str(seen[0]["reconcile_id"])) == 36
    assert [(line["plan"], line["phase"], line["reconcile_id"]) for line in lines] == [
        ("p", "Init", found["reconcile_id"]) for found in seen
    ]
    assert structlog.contextvars.get_contextvars() == {"replica": "r"}


async def test_reconcile_ids_repeat_with_their_seed() -> None:
    ids: list[object] = []

    async def reconcile(_key: str) -> Result:
        ids.append(structlog.contextvars.get_contextvars()["reconcile_id"])
        return Done()

    for _ in range(2):
        queue: WorkQueue[str] = WorkQueue("plans", limiter=ItemExponential())
        queue.add("a")
        queue.shut_down()
        await Controller("plans", reconcile=reconcile, queue=queue, random=Random(7)).run()
    assert ids[0] == ids[1]


async def test_an_error_that_repeats_is_told_once_with_its_traceback() -> None:
    bench = Bench(*[ValueError("same")] * 8)
    with capture_logs() as lines:
        await bench.play("a")
    assert [line["log_level"] for line in lines] == ["error", *["debug"] * 7, "info"]
    assert isinstance(lines[0]["exc_info"], ValueError)
    assert lines[7]["failures"] == 8
    assert lines[-1]["event"] == "reconcile recovered"


async def test_a_failure_that_passes_is_a_warning_without_traceback() -> None:
    bench = Bench(Conflict("newer"), Forbidden("never"))
    with capture_logs() as lines:
        await bench.play("a")
    assert [line["log_level"] for line in lines] == ["warning", "error", "info"]
    assert "exc_info" not in lines[0]


async def test_what_is_no_outcome_is_a_failure() -> None:
    bench = Bench(None)  # type: ignore[arg-type]
    with capture_logs() as lines:
        await bench.play("a")
    assert bench.times() == [0, 1]
    assert "returned None, which is no outcome" in lines[0]["error"]
