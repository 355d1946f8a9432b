from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable

import pytest

from tests.support.managers.runtime import Recorder
from tests.support.server.runtime_lease_server import BROKEN, LeaseServer, LeaseTransport, State, candidate
from upgrade_manager.runtime.leader_election import LeaseLost
from upgrade_manager.runtime.manager import ForcedStop, Manager, NotReady, ShutdownTimeout, Stage


def no_kill() -> None:
    raise AssertionError("the process was killed")


class Bench(Recorder):
    """A manager that elects, on a server with one lease, and what its runnables record."""

    def __init__(
        self, *, identity: str = "a", server: LeaseServer | None = None, kill: Callable[[], None] = no_kill
    ) -> None:
        super().__init__()
        self.server = server or LeaseServer()
        self.transport = LeaseTransport(self.server)
        self.elector = candidate(self.transport, identity)
        self.manager = Manager(elector=self.elector, kill=kill)

    def add(self, stage: Stage, name: str, *, stop_takes: float = 0.0, ready_after: float = 0.0) -> None:
        self.manager.add(stage, name, self.runs(name, stop_takes=stop_takes), ready=self.ready(name, after=ready_after))

    async def run(self, *stops: float) -> None:
        """Run the manager and call `stop` at these times."""
        for moment in stops:
            asyncio.get_running_loop().call_later(moment, self.manager.stop)
        await self.manager.run()


@pytest.fixture(name="bench")
def new_bench() -> Bench:
    return Bench()


def time() -> float:
    return asyncio.get_running_loop().time()


async def running_tasks() -> set[str]:
    """Return the names of other tasks that still run."""
    await asyncio.sleep(0)
    return {task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()}


async def test_stages_start_and_stop_in_order(bench: Bench) -> None:
    for stage in reversed(Stage):
        bench.add(stage, stage.name, stop_takes=1, ready_after=1)
    await bench.run(60)
    assert bench.events == [
        *("+SERVERS", "=SERVERS", "+WEBHOOKS", "=WEBHOOKS", "+CACHES", "=CACHES", "+OTHERS", "=OTHERS"),
        *("+LEADER", "=LEADER"),
        *("-OTHERS", "-LEADER", "-CACHES", "-WEBHOOKS", "-SERVERS"),
    ]
    released, spec = bench.server.writes[-1]
    assert spec["holderIdentity"] == ""
    assert bench.at("-LEADER") < released < bench.at("-CACHES")
    assert await running_tasks() == set()


async def test_hanging_request_to_a_server_does_not_delay_the_release(bench: Bench) -> None:
    bench.add(Stage.SERVERS, "metrics", stop_takes=10)
    bench.add(Stage.LEADER, "work", stop_takes=1)
    await bench.run(60)
    released, spec = bench.server.writes[-1]
    assert spec["holderIdentity"] == ""
    assert 61 < released < 61.1
    assert not bench.elector.is_leader


async def test_lease_is_renewed_until_the_work_has_stopped(bench: Bench) -> None:
    bench.add(Stage.LEADER, "work", stop_takes=25)
    await bench.run(10)
    renewals = [moment for moment, _ in bench.server.writes]
    assert max(after - before for before, after in itertools.pairwise(renewals)) < 2.1
    assert renewals[-1] > bench.at("-work")


async def test_runnables_of_one_stage_start_and_stop_together(bench: Bench) -> None:
    for name in ("a", "b"):
        bench.add(Stage.CACHES, name, stop_takes=20, ready_after=20)
    bench.add(Stage.OTHERS, "later")
    await bench.run(60)
    assert bench.at("+later") == 20
    assert bench.at("-a") == bench.at("-b") == pytest.approx(80, abs=0.1)


async def test_leader_runnables_run_on_one_replica_at_a_time() -> None:
    first = Bench()
    second = Bench(server=first.server, identity="b")
    for bench in (first, second):
        bench.add(Stage.OTHERS, "other")
        bench.add(Stage.LEADER, "work")
    async with asyncio.TaskGroup() as group:
        group.create_task(first.run(60))
        await asyncio.sleep(1)
        group.create_task(second.run(120))
    assert second.at("+other") == 1
    assert first.at("-work") <= second.at("+work") < 60 + 5


async def test_stopped_candidate_does_not_touch_the_lease(bench: Bench) -> None:
    await candidate(LeaseTransport(bench.server), "leader").acquire()
    await bench.run(5)
    assert len(bench.server.writes) == 1
    assert time() < 5.1


async def test_stop_while_caches_sync_takes_no_time(bench: Bench) -> None:
    bench.add(Stage.CACHES, "cache", ready_after=100)
    await bench.run(5)
    assert bench.lines == [(0, "+cache"), (5, "-cache")]


async def test_stop_before_the_start_runs_nothing(bench: Bench) -> None:
    bench.add(Stage.SERVERS, "server")
    bench.manager.stop()
    await bench.run()
    assert bench.events == []


async def test_leader_runnables_run_without_an_election() -> None:
    record, manager = Recorder(), Manager(elector=None)
    manager.add(Stage.LEADER, "work", record.runs("work"))
    asyncio.get_running_loop().call_later(5, manager.stop)
    await manager.run()
    assert record.lines == [(0, "+work"), (5, "-work")]


async def test_cache_not_synced_in_time_stops_the_manager(bench: Bench) -> None:
    bench.add(Stage.SERVERS, "server")
    bench.add(Stage.CACHES, "nodes", ready_after=1000)
    with pytest.raises(NotReady, match="nodes not ready within 120 s"):
        await bench.run()
    assert bench.events == ["+server", "=server", "+nodes", "-nodes", "-server"]
    assert bench.at("-server") == 120


async def test_runnable_without_ready_timeout_is_awaited(bench: Bench) -> None:
    available = bench.ready("api", after=7200)
    bench.manager.add(Stage.SERVERS, "api", bench.runs("api"), ready=available, ready_timeout=None)
    bench.add(Stage.CACHES, "nodes")
    await bench.run(7300)
    assert bench.at("+nodes") == 7200


async def test_failure_stops_everything_in_order_and_is_raised(bench: Bench) -> None:
    bench.add(Stage.SERVERS, "server")
    bench.manager.add(Stage.OTHERS, "other", bench.fails("other", OSError("port in use"), after=9))
    bench.add(Stage.LEADER, "work", stop_takes=1)
    with pytest.raises(OSError, match="port in use"):
        await bench.run()
    assert bench.events[-2:] == ["-work", "-server"]
    assert bench.server.spec["holderIdentity"] == ""


async def test_runnable_that_returns_stops_nothing_else(bench: Bench) -> None:
    bench.manager.add(Stage.OTHERS, "brief", bench.ready("brief", after=1))
    bench.add(Stage.OTHERS, "long")
    await bench.run(60)
    assert (bench.at("=brief"), bench.at("-long")) == (1, 60)


@pytest.mark.parametrize(
    ("error", "raised", "message"),
    [
        (asyncio.CancelledError("inner"), RuntimeError, "informer: an awaited task was cancelled"),
        (ExceptionGroup("both", [OSError("1"), OSError("2")]), ExceptionGroup, "both"),
        (ExceptionGroup("one", [OSError("1")]), OSError, "1"),
    ],
)
async def test_failure_of_a_runnable_is_raised(
    bench: Bench, error: BaseException, raised: type[Exception], message: str
) -> None:
    bench.manager.add(Stage.OTHERS, "informer", bench.fails("informer", error, after=1))
    with pytest.raises(raised, match=message):
        await bench.run()


@pytest.mark.parametrize(
    ("error", "raised", "message"),
    [
        (TimeoutError("mine"), TimeoutError, "mine"),
        (asyncio.CancelledError("inner"), RuntimeError, "readiness of a: an awaited task was cancelled"),
    ],
)
async def test_failed_readiness_check_stops_the_manager(
    bench: Bench, error: BaseException, raised: type[Exception], message: str
) -> None:
    bench.manager.add(Stage.CACHES, "a", bench.runs("a"), ready=bench.fails("ready", error))
    bench.add(Stage.OTHERS, "later")
    with pytest.raises(raised, match=message):
        await bench.run()
    assert "+later" not in bench.events


async def test_shutdown_timeout_is_for_all_stages_together(bench: Bench) -> None:
    for stage in (Stage.OTHERS, Stage.LEADER, Stage.CACHES):
        bench.add(stage, stage.name.lower(), stop_takes=14)
    with pytest.raises(ShutdownTimeout, match=r"shutdown timed out after 30 s: caches$"):
        await bench.run(60)
    assert time() == 90
    assert bench.server.spec["holderIdentity"] == ""
    assert await running_tasks() == set()


async def test_second_stop_request_forces_the_stop(bench: Bench) -> None:
    bench.add(Stage.SERVERS, "server")
    bench.add(Stage.LEADER, "slow", stop_takes=20)
    with pytest.raises(ForcedStop, match="by a second signal"):
        await bench.run(60, 63)
    assert time() == 63
    # The lease expires, because the work may not have ended.
    assert bench.server.spec["holderIdentity"] == "a"
    assert await running_tasks() == set()


async def test_work_that_ignores_cancellation_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    record, killed = Recorder(), asyncio.Event()
    codes: list[int] = []

    def exit_process(code: int) -> None:
        codes.append(code)
        killed.set()

    monkeypatch.setattr("os._exit", exit_process)
    manager = Manager(elector=None)
    manager.add(Stage.LEADER, "stuck", record.ignores_cancellation("stuck", until=killed))
    asyncio.get_running_loop().call_later(60, manager.stop)
    with pytest.raises(ShutdownTimeout):
        await manager.run()
    assert codes == [1]
    assert record.at("-stuck") == 60 + 30 + 3


@pytest.mark.parametrize("state", BROKEN)
async def test_losing_the_lease_cancels_everything_at_once(state: State) -> None:
    bench = Bench(kill=lambda: bench.record("killed"))
    for stage in (Stage.SERVERS, Stage.CACHES, Stage.LEADER):
        bench.add(stage, stage.name)
    asyncio.get_running_loop().call_later(60, setattr, bench.transport, "state", state)
    with pytest.raises(LeaseLost, match=r"leader election lost.*not renewed within 10 s"):
        await bench.run()
    assert not bench.elector.is_leader
    # A stuck request ends only with the process.
    assert ("killed" in bench.events) is (state is State.STUCK)
    assert bench.at("-LEADER") == bench.at("-CACHES") == bench.at("-SERVERS") <= 60 + 10
    assert bench.server.spec["holderIdentity"] == "a"
    assert bench.at("-LEADER") < bench.server.writes[-1][0] + 15


async def test_losing_the_lease_ends_an_orderly_stop(bench: Bench) -> None:
    bench.add(Stage.LEADER, "work", stop_takes=29)
    asyncio.get_running_loop().call_later(50, setattr, bench.transport, "state", State.REFUSING)
    with pytest.raises(LeaseLost):
        await bench.run(55)
    assert time() <= 60


async def test_cancelling_the_manager_stops_it_in_order(bench: Bench) -> None:
    bench.add(Stage.SERVERS, "server")
    bench.add(Stage.LEADER, "work", stop_takes=3)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(60):
            await bench.run()
    assert bench.events[-2:] == ["-work", "-server"]
    assert bench.server.spec["holderIdentity"] == ""


async def test_cancelling_the_manager_twice_forces_the_stop(bench: Bench) -> None:
    bench.add(Stage.LEADER, "work", stop_takes=20)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(bench.run())
        await asyncio.sleep(60)
        task.cancel()
        await asyncio.sleep(5)
        task.cancel()
    assert time() == 65
    assert task.cancelled()
    assert await running_tasks() == set()


async def test_release_that_hangs_exceeds_the_shutdown_timeout() -> None:
    bench = Bench(kill=lambda: None)
    asyncio.get_running_loop().call_later(59.4, setattr, bench.transport, "state", State.STUCK)
    with pytest.raises(ShutdownTimeout, match="shutdown timed out after 30 s: lease-release"):
        await bench.run(59.5)
