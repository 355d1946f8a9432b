from __future__ import annotations

import asyncio
import itertools
import re
import socket
from collections.abc import Callable
from datetime import datetime, timedelta
from random import Random
from uuid import UUID

import pytest
from prometheus_client import CollectorRegistry

from hack.virtual_time import virtual_now
from tests.support.server.runtime_lease_server import NAME, LeaseServer, LeaseTransport, State, candidate
from upgrade_manager.kube.errors import Transient
from upgrade_manager.kube.transport import Request, Response
from upgrade_manager.runtime.healthz import Unhealthy
from upgrade_manager.runtime.leader_election import LeaderElector, LeaderTransport, new_identity
from upgrade_manager.runtime.lease import REQUEST_TIMEOUT, RETRY_PERIOD
from upgrade_manager.runtime.metrics import Metrics


def time() -> float:
    return asyncio.get_running_loop().time()


async def new_leader(name: str = "a") -> tuple[LeaseServer, LeaseTransport, LeaderElector]:
    transport = LeaseTransport(LeaseServer())
    elector = candidate(transport, name)
    await elector.acquire()
    return transport.server, transport, elector


async def lead(elector: LeaderElector, seconds: float) -> None:
    """Keep the lease for so long. Raises LeaseLost."""
    try:
        async with asyncio.timeout(seconds), asyncio.TaskGroup() as group:
            group.create_task(elector.renew())
            group.create_task(elector.watch())
    except TimeoutError:
        return
    except ExceptionGroup as group:
        raise group.exceptions[0] from None


async def test_first_candidate_creates_the_lease() -> None:
    server, metrics = LeaseServer(), Metrics(CollectorRegistry())
    transport = LeaseTransport(server)
    elector = candidate(transport, "a", metrics=metrics)

    def status() -> tuple[bool, float | None]:
        return elector.is_leader, metrics.registry.get_sample_value("leader_election_master_status", {"name": NAME})

    assert status() == (False, 0)
    await elector.acquire()
    assert status() == (True, 1)
    assert server.spec == {
        "holderIdentity": "a",
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-01-01T00:00:00.020000Z",
        "renewTime": "2026-01-01T00:00:00.020000Z",
        "leaseTransitions": 0,
    }
    await elector.release()
    assert status() == (False, 0)
    leases = "/apis/coordination.k8s.io/v1/namespaces/harvester-system/leases"
    assert transport.paths == {leases, f"{leases}/{NAME}"}


async def test_leader_renews_with_one_write_and_no_read() -> None:
    server, transport, elector = await new_leader()
    transport.requests.clear()
    acquired = server.spec["acquireTime"]
    await lead(elector, 60)
    assert transport.requests == ["PUT"] * 29
    assert (server.spec["acquireTime"], server.spec["leaseTransitions"]) == (acquired, 0)
    assert server.spec["renewTime"] > acquired


@pytest.mark.parametrize("hanging", [1, 2])
async def test_renewal_follows_hanging_requests_at_once(hanging: int) -> None:
    server, transport, elector = await new_leader()
    transport.state = State.HANGING
    end = RETRY_PERIOD + hanging * REQUEST_TIMEOUT
    asyncio.get_running_loop().call_later(end - 0.5, setattr, transport, "state", State.HEALTHY)
    await lead(elector, 20)
    (first, _), (second, _), *_ = server.writes
    assert second - first == pytest.approx(end, abs=0.1)
    assert server.spec["leaseTransitions"] == 0


async def test_unknown_fields_and_labels_are_kept() -> None:
    server, _, elector = await new_leader()
    assert server.lease is not None
    server.lease["metadata"]["labels"] = {"of": "another"}
    server.lease["spec"]["strategy"] = "OldestEmulationVersion"
    server.store(server.lease)
    await lead(elector, 5)
    assert server.lease["metadata"]["labels"] == {"of": "another"}
    assert server.spec["strategy"] == "OldestEmulationVersion"


@pytest.mark.parametrize(("written", "waits"), [(15, 15), (30, 30), (3, 3), (0, 15), ("15", 15)])
async def test_lease_is_taken_over_after_its_duration(written: object, waits: float) -> None:
    server, _, _ = await new_leader("dead")
    # The times of another machine are ignored.
    server.spec.update(leaseDurationSeconds=written, renewTime="1970-01-01T00:00:00.000000Z")
    await asyncio.sleep(100)
    started = time()
    await candidate(LeaseTransport(server), "b").acquire()
    assert waits <= time() - started <= waits + 4.5
    assert server.spec["leaseTransitions"] == 1


async def test_candidate_polls_every_2_to_4_4_seconds() -> None:
    server, _, leader = await new_leader()
    transport = LeaseTransport(server, delay=0)
    async with asyncio.TaskGroup() as group:
        leading = group.create_task(lead(leader, 600))
        waiting = group.create_task(candidate(transport, "b").acquire())
        await leading
        waiting.cancel()
    gaps = [after - before for before, after in itertools.pairwise(transport.times)]
    assert all(2 <= gap < 4.4 for gap in gaps)
    assert max(gaps) - min(gaps) > 1.5


@pytest.mark.parametrize("seed", range(20))
async def test_another_leads_within_20_s_of_a_leaders_death(seed: int) -> None:
    server, _, first = await new_leader()
    second = candidate(LeaseTransport(server), "b", seed=seed)
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(second.acquire())
        await lead(first, 30 + Random(seed).uniform(0, 2))
        died = time()
        await waiting
    assert 13 < time() - died < 20


async def test_released_lease_is_acquired_at_the_next_poll() -> None:
    server, _, first = await new_leader()
    second = candidate(LeaseTransport(server), "b")
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(second.acquire())
        await lead(first, 60)
        await first.release()
        released = time()
        assert (server.spec["holderIdentity"], server.spec["leaseDurationSeconds"]) == ("", 1)
        assert not first.is_leader
        await waiting
    assert time() - released < 5
    assert server.spec["leaseTransitions"] == 1


async def test_watch_and_release_without_a_lease_do_nothing() -> None:
    transport = LeaseTransport(LeaseServer())
    elector = candidate(transport, "a")
    await elector.watch()
    await elector.release()
    assert transport.requests == []
    await elector.acquire()
    for _ in range(2):
        await elector.release()
        assert len(transport.server.writes) == 2


async def test_lease_acquired_without_a_response_is_released() -> None:
    server = LeaseServer()
    elector = candidate(LeaseTransport(server), "a")
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(elector.acquire())
        await asyncio.sleep(0.035)
        waiting.cancel()
    assert server.spec["holderIdentity"] == "a"
    assert not elector.is_leader
    await elector.release()
    assert server.spec["holderIdentity"] == ""


@pytest.mark.parametrize("holder", ["b", ""])
async def test_release_leaves_the_lease_of_another_holder(holder: str) -> None:
    server, transport, elector = await new_leader()
    if holder:
        server.spec["holderIdentity"] = holder
    else:
        server.lease = None
    transport.requests.clear()
    await elector.release()
    assert len(server.writes) == 1
    assert transport.requests == ["GET"]


@pytest.mark.parametrize(("repaired", "holder", "seconds"), [(3, "", 3), (100, "a", 10)], ids=["retried", "given up"])
async def test_failed_release_is_retried_until_the_deadline(repaired: float, holder: str, seconds: float) -> None:
    server, transport, elector = await new_leader()
    transport.state = State.FAILING
    asyncio.get_running_loop().call_later(repaired, setattr, transport, "state", State.HEALTHY)
    started = time()
    await elector.release()
    assert server.spec["holderIdentity"] == holder
    assert seconds <= time() - started < seconds + 2.1


async def test_lost_response_makes_the_leader_read_the_lease() -> None:
    transport, metrics = LeaseTransport(LeaseServer()), Metrics(CollectorRegistry())
    elector = candidate(transport, "a", metrics=metrics)
    await elector.acquire()
    transport.state = State.LOSING_RESPONSES
    asyncio.get_running_loop().call_later(3, setattr, transport, "state", State.HEALTHY)
    await lead(elector, 60)
    assert elector.is_leader
    assert transport.server.spec["leaseTransitions"] == 0
    assert metrics.registry.get_sample_value("leader_election_slowpath_total", {"name": NAME}) == 1


@pytest.mark.parametrize("is_deleted", [True, False], ids=["deleted", "cleared"])
async def test_lease_that_another_client_frees_is_acquired_again(*, is_deleted: bool) -> None:
    server, transport, elector = await new_leader()
    if is_deleted:
        server.lease = None
    else:
        server.set_holder("")
    asyncio.get_running_loop().call_later(2.03, setattr, transport, "failing_puts", 1)
    await lead(elector, 60)
    assert elector.is_leader
    assert transport.failing_puts == 0
    assert (server.spec["holderIdentity"], server.spec["leaseTransitions"]) == ("a", 0 if is_deleted else 1)


async def test_lease_that_another_client_clears_is_held_at_once() -> None:
    server, _, elector = await new_leader()
    server.set_holder("")
    await lead(elector, 3)
    assert (server.spec["holderIdentity"], elector.is_leader) == ("a", True)


async def test_one_of_two_candidates_creates_the_lease() -> None:
    server = LeaseServer()
    electors = [candidate(LeaseTransport(server), name) for name in "ab"]
    async with asyncio.TaskGroup() as group:
        waiting = [group.create_task(elector.acquire()) for elector in electors]
        await asyncio.sleep(1)
        leads = [elector.identity == server.spec["holderIdentity"] for elector in electors]
        assert sorted(leads) == [False, True]
        assert [task.done() for task in waiting] == leads == [elector.is_leader for elector in electors]
        for task in waiting:
            task.cancel()


async def test_acquire_survives_all_failures_of_the_api() -> None:
    transport = LeaseTransport(LeaseServer(), state=State.REFUSING)
    loop = asyncio.get_running_loop()
    states = (State.HANGING, State.FAILING, State.LOSING_RESPONSES, State.HEALTHY)
    for number, state in enumerate(states, start=1):
        loop.call_later(30 * number, setattr, transport, "state", state)
    elector = candidate(transport, "a")
    await elector.acquire()
    assert elector.is_leader
    assert 120 < time() < 130
    # At most two requests per attempt, and one attempt per two seconds.
    assert len(transport.requests) < 120


async def test_health_check_fails_long_after_the_last_renewal() -> None:
    elector = candidate(LeaseTransport(LeaseServer()), "a")
    await elector.check()
    await elector.acquire()
    await asyncio.sleep(34)
    await elector.check()
    await asyncio.sleep(2)
    with pytest.raises(Unhealthy, match="not renewed for more than 35 s by its leader"):
        await elector.check()
    assert not elector.is_leader


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (State.FORBIDDEN, r"403.*\. Allow the service account to .* namespace$"),
        (State.INVALID, r"422[^.]*$"),
    ],
    ids=["forbidden", "invalid"],
)
async def test_replica_whose_lease_is_refused_is_not_ready(
    state: State, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    transport = LeaseTransport(LeaseServer(), state=state)
    elector = candidate(transport, "a")
    await elector.check_access()
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(elector.acquire())
        await asyncio.sleep(30)
        with pytest.raises(Unhealthy, match=rf"^lease harvester-system/manager.example: .*{reason}"):
            await elector.check_access()
        # It may recover: the rights may come.
        transport.state = State.FAILING
        await asyncio.sleep(5)
        await elector.check_access()
        transport.state = State.HEALTHY
        await waiting
    await elector.check_access()
    assert re.findall(r"\[(\w+) *\] lease request failed", capsys.readouterr().out).count("warning") == 1


def clock(*, step: float) -> Callable[[], datetime]:
    """Return a clock that is wrong by `step` seconds during every other minute."""
    return lambda: virtual_now() + timedelta(seconds=step if time() // 60 % 2 else 0)


@pytest.mark.parametrize("step", [7200, -7200])
async def test_clock_that_jumps_changes_no_leader(step: float) -> None:
    server = LeaseServer()
    first = candidate(LeaseTransport(server), "a", now=clock(step=step))
    second = candidate(LeaseTransport(server), "b", now=clock(step=-step))
    await first.acquire()
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(second.acquire())
        await lead(first, 301)
        died = time()
        assert (server.spec["holderIdentity"], waiting.done()) == ("a", False)
        await waiting
    assert 13 < time() - died < 20


def test_identity_is_the_host_name_and_a_uuid() -> None:
    host, _, unique = new_identity(Random(1)).rpartition("_")
    assert (host, UUID(unique).version) == (socket.gethostname(), 4)
    assert new_identity(Random(1)) == new_identity(Random(1))
    assert new_identity(Random(1)) != new_identity(Random(2))


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_write_without_the_lease_is_refused(method: str) -> None:
    inner = LeaseTransport(LeaseServer())
    with pytest.raises(Transient, match=f"{method} /x refused: this process is not the leader"):
        await LeaderTransport(inner, is_leader=lambda: False).send(Request(method=method, path="/x"))
    assert inner.requests == []


@pytest.mark.parametrize(("method", "leads"), [("GET", False), ("HEAD", False), ("GET", True), ("PATCH", True)])
async def test_reads_streams_and_the_leaders_writes_pass(method: str, *, leads: bool) -> None:
    inner = LeaseTransport(LeaseServer())
    transport = LeaderTransport(inner, is_leader=lambda: leads)
    request = Request(method=method, path="/x", body=b'{"metadata":{}}')
    assert isinstance(await transport.send(request), Response)
    assert inner.requests == [method]
    with pytest.raises(NotImplementedError):
        transport.open(request)
