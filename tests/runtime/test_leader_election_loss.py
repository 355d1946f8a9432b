"""The loss of a lease, and the log of its changes."""

from __future__ import annotations

import asyncio

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from tests.runtime.test_leader_election import lead, new_leader, time
from tests.support.server.runtime_lease_server import NAME, LeaseServer, LeaseTransport, State, candidate
from upgrade_manager.runtime.leader_election import LeaseLost
from upgrade_manager.runtime.lease import REQUEST_TIMEOUT
from upgrade_manager.runtime.metrics import Metrics

LOST = "leader election lost: lease harvester-system/manager.example: "


async def test_leader_stops_when_it_sees_another_holder() -> None:
    transport, metrics = LeaseTransport(LeaseServer()), Metrics(CollectorRegistry())
    elector = candidate(transport, "a", metrics=metrics)
    await elector.acquire()
    transport.server.set_holder("b")
    started = time()
    with pytest.raises(LeaseLost, match=f"^{LOST}b holds it$"):
        await lead(elector, 60)
    assert time() - started < 2.1
    assert not elector.is_leader
    assert metrics.registry.get_sample_value("leader_election_master_status", {"name": NAME}) == 0


async def test_leader_stops_10_s_after_its_last_renewal() -> None:
    _, transport, elector = await new_leader()
    await lead(elector, 21)
    renewed = max(transport.times)
    transport.state = State.HANGING
    with pytest.raises(LeaseLost, match=f"^{LOST}not renewed within 10 s$"):
        await lead(elector, 60)
    assert time() - renewed == pytest.approx(10, abs=0.01)
    assert not elector.is_leader
    # The lease may be held, and is released.
    transport.state = State.HEALTHY
    await elector.release()
    assert transport.server.spec["holderIdentity"] == ""


async def test_log_shows_the_lease_of_each_change() -> None:
    with capture_logs() as logs:
        _, transport, elector = await new_leader()
        await elector.release()
        await elector.acquire()
        transport.state = State.FAILING
        await elector.release()
    shown = [(log["event"], log["log_level"]) for log in logs if log["event"] != "lease request failed"]
    assert shown == [
        ("new leader elected", "info"),
        ("became leader", "info"),
        ("lease released", "info"),
        ("new leader elected", "info"),
        ("became leader", "info"),
        ("lease not released; it expires", "warning"),
    ]
    assert logs[-1]["seconds"] == 15
    assert {(log["lease"], log["identity"]) for log in logs} == {(f"harvester-system/{NAME}", "a")}


async def test_failed_requests_are_logged_with_the_reason() -> None:
    transport = LeaseTransport(LeaseServer(), state=State.HANGING)
    loop = asyncio.get_running_loop()
    loop.call_later(30, setattr, transport, "state", State.HEALTHY)
    elector = candidate(transport, "a")
    with capture_logs() as logs:
        await elector.acquire()
        transport.state = State.FAILING
        loop.call_later(3, setattr, transport, "state", State.HEALTHY)
        await lead(elector, 8)
    failed = [(log["error"], log["log_level"]) for log in logs if log["event"] == "lease request failed"]
    assert failed[0] == (f"timed out after {REQUEST_TIMEOUT:g} s", "warning")
    # A warning begins each series of failures.
    assert [level for _, level in failed].count("warning") == 2
    assert "500" in failed[-1][0]


async def test_each_new_leader_is_logged_once() -> None:
    server, _, leader = await new_leader()
    with capture_logs() as logs:
        waiting = asyncio.create_task(candidate(LeaseTransport(server), "b").acquire())
        await lead(leader, 30)
        await leader.release()
        await waiting
    assert [entry["leader"] for entry in logs if entry["event"] == "new leader elected"] == ["a", "b"]
