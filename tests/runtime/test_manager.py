from __future__ import annotations

import asyncio
import itertools
import signal

import pytest

from tests.support.runtime_lease_server import LeaseLine, LeaseServer, Line, candidate
from tests.support.runtime_recorder import Recorder
from upgrade_manager.runtime.leader_election import LeaseLost
from upgrade_manager.runtime.manager import (
    ForcedStop,
    Manager,
    NotReady,
    ShutdownTimeout,
    Stage,
    stop_on_signals,
)


def no_kill() -> None:
    raise AssertionError("the process was killed")


def new_manager(line: LeaseLine | None = None, *, identity: str = "a") -> Manager:
    elector = None if line is None else candidate(line, identity)
    return Manager(elector=elector, kill=no_kill)


def stop_after(manager: Manager, *seconds: float) -> None:
    for moment in seconds:
        asyncio.get_running_loop().call_later(moment, manager.stop)


async def others() -> set[str]:
    """Return the names of tasks that still run."""
    await asyncio.sleep(0)
    return {task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()}


async def test_stages_start_and_stop_in_order() -> None:
    record, server = Recorder(), LeaseServer()
    manager = new_manager(LeaseLine(server))
    for stage in reversed(Stage):
        manager.add(stage, stage.name, record.runs(stage.name, stop_takes=1), ready=record.ready(stage.name, after=1))
    stop_after(manager, 60)
    await manager.run()
    assert record.events == [
        *("+SERVERS", "=SERVERS", "+WEBHOOKS", "=WEBHOOKS", "+CACHES", "=CACHES", "+OTHERS", "=OTHERS"),
        *("+LEADER", "=LEADER"),
        *("-OTHERS", "-LEADER", "-CACHES", "-WEBHOOKS", "-SERVERS"),
    ]
    released, spec = server.writes[-1]
    assert spec["holderIdentity"] == ""
    assert released > record.at("-SERVERS")
    assert await others() == set()


async def test_the_lease_is_renewed_until_all_work_has_stopped() -> None:
    record, server = Recorder(), LeaseServer()
    manager = new_manager(LeaseLine(server))
    manager.add(Stage.LEADER, "work", record.runs("work", stop_takes=25))
    stop_after(manager, 10)
    await manager.run()
    renewals = [time for time, _ in server.writes]
    assert max(after - before for before, after in itertools.pairwise(renewals)) < 2.1
    assert renewals[-1] > record.at("-work")


async def test_runnables_of_one_stage_start_and_stop_together() -> None:
    record = Recorder()
    manager = new_manager()
    for name in ("a", "b"):
        manager.add(Stage.CACHES, name, record.runs(name, stop_takes=20), ready=record.ready(name, after=20))
    manager.add(Stage.OTHERS, "later", record.runs("later"))
    stop_after(manager, 60)
    await manager.run()
    assert record.at("+later") == 20
    assert record.at("-a") == record.at("-b") == 80


async def test_only_the_leader_runs_leader_only_work() -> None:
    record, server = Recorder(), LeaseServer()
    first, second = new_manager(LeaseLine(server)), new_manager(LeaseLine(server), identity="b")
    for name, manager in (("first", first), ("second", second)):
        manager.add(Stage.OTHERS, f"{name}-other", record.runs(f"{name}-other"))
        manager.add(Stage.LEADER, name, record.runs(name))
    stop_after(first, 60)
    stop_after(second, 120)
    async with asyncio.TaskGroup() as group:
        group.create_task(first.run())
        await asyncio.sleep(1)
        group.create_task(second.run())
    assert record.at("+second-other") == 1
    assert record.at("-first") <= record.at("+second") < 60 + 5


async def test_a_stopped_candidate_does_not_touch_the_lease() -> None:
    server = LeaseServer()
    await candidate(LeaseLine(server), "leader").acquire()
    manager = new_manager(LeaseLine(server), identity="b")
    stop_after(manager, 5)
    await manager.run()
    assert len(server.writes) == 1
    assert asyncio.get_running_loop().time() < 5.1


async def test_a_stop_while_caches_sync_takes_no_time() -> None:
    record = Recorder()
    manager = new_manager()
    manager.add(Stage.CACHES, "cache", record.runs("cache"), ready=record.ready("cache", after=100))
    stop_after(manager, 5)
    await manager.run()
    assert record.lines == [(0, "+cache"), (5, "-cache")]


async def test_a_stop_before_the_start_runs_nothing() -> None:
    record = Recorder()
    manager = new_manager()
    manager.add(Stage.SERVERS, "server", record.runs("server"))
    manager.stop()
    await manager.run()
    assert record.events == []


async def test_a_cache_not_synced_in_time_stops_the_manager() -> None:
    record = Recorder()
    manager = new_manager()
    manager.add(Stage.SERVERS, "server", record.runs("server"))
    manager.add(Stage.CACHES, "nodes", record.runs("nodes"), ready=record.ready("nodes", after=1000))
    with pytest.raises(NotReady, match="nodes not ready within 120 s"):
        await manager.run()
    assert record.events == ["+server", "+nodes", "-nodes", "-server"]
    assert record.at("-server") == 120


async def test_a_timeout_inside_a_readiness_check_is_raised() -> None:
    manager = new_manager()
    record = Recorder()
    manager.add(Stage.CACHES, "a", record.runs("a"), ready=record.fails("ready", TimeoutError("mine")))
    with pytest.raises(TimeoutError, match="mine"):
        await manager.run()


async def test_a_failure_stops_everything_in_order_and_is_raised() -> None:
    record, server = Recorder(), LeaseServer()
    manager = new_manager(LeaseLine(server))
    manager.add(Stage.SERVERS, "server", record.runs("server"))
    manager.add(Stage.OTHERS, "other", record.fails("other", OSError("port in use"), after=9))
    manager.add(Stage.LEADER, "work", record.runs("work", stop_takes=1))
    with pytest.raises(OSError, match="port in use"):
        await manager.run()
    assert record.events == ["+server", "+other", "+work", "-work", "-server"]
    assert server.spec["holderIdentity"] == ""


async def test_a_runnable_that_returns_stops_nothing_else() -> None:
    record = Recorder()

    async def brief() -> None:
        await asyncio.sleep(1)

    manager = new_manager()
    manager.add(Stage.OTHERS, "brief", brief)
    manager.add(Stage.OTHERS, "long", record.runs("long"))
    stop_after(manager, 60)
    await manager.run()
    assert record.at("-long") == 60


async def test_a_cancelled_wait_inside_a_runnable_is_a_failure() -> None:
    record = Recorder()
    manager = new_manager()
    manager.add(Stage.OTHERS, "informer", record.fails("informer", asyncio.CancelledError("inner"), after=1))
    with pytest.raises(RuntimeError, match="informer: an awaited task was cancelled"):
        await manager.run()


async def test_several_failures_of_a_runnable_stay_in_a_group() -> None:
    record = Recorder()
    manager = new_manager()
    manager.add(Stage.OTHERS, "a", record.fails("a", ExceptionGroup("both", [OSError("1"), OSError("2")])))
    with pytest.raises(ExceptionGroup, match="both"):
        await manager.run()


async def test_the_shutdown_timeout_is_for_all_stages_together() -> None:
    record, server = Recorder(), LeaseServer()
    manager = new_manager(LeaseLine(server))
    for stage in (Stage.OTHERS, Stage.LEADER, Stage.CACHES):
        manager.add(stage, stage.name.lower(), record.runs(stage.name, stop_takes=14))
    stop_after(manager, 60)
    with pytest.raises(ShutdownTimeout, match="shutdown timed out after 30 s: caches, lease-renew, lease-watch"):
        await manager.run()
    assert asyncio.get_running_loop().time() == 90
    assert server.spec["holderIdentity"] == "a"
    assert await others() == set()


async def test_a_second_stop_request_forces_the_stop() -> None:
    record, server = Recorder(), LeaseServer()
    manager = new_manager(LeaseLine(server))
    manager.add(Stage.SERVERS, "server", record.runs("server"))
    manager.add(Stage.LEADER, "slow", record.runs("slow", stop_takes=20))
    stop_after(manager, 60, 63)
    with pytest.raises(ForcedStop, match="by a second signal"):
        await manager.run()
    assert asyncio.get_running_loop().time() == 63
    # The lease runs out by itself: nobody knows what the work was doing.
    assert server.spec["holderIdentity"] == "a"
    assert await others() == set()


async def test_work_that_ignores_cancellation_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    record, killed = Recorder(), asyncio.Event()
    codes: list[int] = []

    def die(code: int) -> None:
        codes.append(code)
        killed.set()

    monkeypatch.setattr("os._exit", die)
    manager = Manager(elector=None)
    manager.add(Stage.LEADER, "stuck", record.ignores_cancellation("stuck", until=killed))
    stop_after(manager, 60)
    with pytest.raises(ShutdownTimeout):
        await manager.run()
    assert codes == [1]
    assert record.at("-stuck") == 60 + 30 + 3


@pytest.mark.parametrize("line", [Line.DOWN, Line.HANGING, Line.LOSING, Line.STUCK, Line.FAILING])
async def test_losing_the_lease_cancels_everything_at_once(line: Line) -> None:
    record, server = Recorder(), LeaseServer()
    wire = LeaseLine(server)
    # A call that is stuck for a minute holds only itself up, and ends with the process.
    manager = Manager(elector=candidate(wire, "a"), kill=lambda: record.record("killed"))
    manager.add(Stage.SERVERS, "server", record.runs("server"))
    manager.add(Stage.CACHES, "cache", record.runs("cache"))
    manager.add(Stage.LEADER, "work", record.runs("work"))
    asyncio.get_running_loop().call_later(60, setattr, wire, "line", line)
    with pytest.raises(LeaseLost, match="leader election lost"):
        await manager.run()
    assert ("killed" in record.events) is (line is Line.STUCK)
    assert record.at("-work") == record.at("-cache") == record.at("-server") <= 60 + 10
    assert server.spec["holderIdentity"] == "a"
    last_write = server.writes[-1][0]
    assert record.at("-work") < last_write + 15


async def test_losing_the_lease_ends_an_orderly_stop() -> None:
    record, server = Recorder(), LeaseServer()
    wire = LeaseLine(server)
    manager = new_manager(wire)
    manager.add(Stage.LEADER, "work", record.runs("work", stop_takes=29))
    asyncio.get_running_loop().call_later(50, setattr, wire, "line", Line.DOWN)
    stop_after(manager, 55)
    with pytest.raises(LeaseLost):
        await manager.run()
    assert asyncio.get_running_loop().time() <= 60


async def test_a_lease_held_by_another_is_lost() -> None:
    record, server = Recorder(), LeaseServer()
    manager = new_manager(LeaseLine(server))
    manager.add(Stage.LEADER, "work", record.runs("work"))

    def steal() -> None:
        assert server.lease is not None
        server.lease["spec"]["holderIdentity"] = "thief"
        server.store(server.lease)

    asyncio.get_running_loop().call_later(60, steal)
    with pytest.raises(LeaseLost, match="thief holds it"):
        await manager.run()
    assert record.at("-work") <= 62.1


async def test_cancelling_the_manager_stops_it_in_order() -> None:
    record, server = Recorder(), LeaseServer()
    manager = new_manager(LeaseLine(server))
    manager.add(Stage.SERVERS, "server", record.runs("server"))
    manager.add(Stage.LEADER, "work", record.runs("work", stop_takes=3))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(60):
            await manager.run()
    assert record.events == ["+server", "+work", "-work", "-server"]
    assert server.spec["holderIdentity"] == ""


async def test_cancelling_the_manager_twice_forces_the_stop() -> None:
    record = Recorder()
    manager = new_manager()
    manager.add(Stage.LEADER, "work", record.runs("work", stop_takes=20))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(manager.run())
        await asyncio.sleep(60)
        task.cancel()
        await asyncio.sleep(5)
        task.cancel()
    assert asyncio.get_running_loop().time() == 65
    assert task.cancelled()
    assert await others() == set()


async def test_a_release_that_hangs_exceeds_the_shutdown_timeout() -> None:
    server = LeaseServer()
    wire = LeaseLine(server)
    manager = Manager(elector=candidate(wire, "a"), kill=lambda: None)
    stop_after(manager, 59.5)
    asyncio.get_running_loop().call_later(59.4, setattr, wire, "line", Line.STUCK)
    with pytest.raises(ShutdownTimeout, match="shutdown timed out after 30 s: release of the lease"):
        await manager.run()


@pytest.mark.real_loop
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_each_signal_is_one_stop_request(number: signal.Signals) -> None:
    received = asyncio.Event()
    calls: list[int] = []

    def stop() -> None:
        calls.append(1)
        received.set()

    before = signal.getsignal(number)
    with stop_on_signals(stop):
        for count in (1, 2):
            received.clear()
            signal.raise_signal(number)
            await received.wait()
            assert len(calls) == count
    assert signal.getsignal(number) in {before, signal.SIG_DFL, signal.default_int_handler}
