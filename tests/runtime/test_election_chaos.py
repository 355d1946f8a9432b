"""Several managers, one lease, breaking networks and stalled processes: never two leaders, and one after the repair."""

from __future__ import annotations

import asyncio
import contextlib
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import partial

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hack.virtual_time import VirtualEventLoop, run
from tests.support.server.runtime_lease_server import (
    STALL,
    LeaseServer,
    LeaseTransport,
    State,
    candidate,
    sleep_uncancelled,
)
from upgrade_manager.kube.errors import Transient
from upgrade_manager.kube.transport import Request, Response, Stream
from upgrade_manager.runtime.leader_election import LeaderElector, LeaderTransport, LeaseLost
from upgrade_manager.runtime.manager import Manager, ShutdownTimeout, Stage

REPLICAS = 3
#: (seconds since the last step, replica, new state of its transport, a stop of its manager, or seconds for which the
#: loop of all replicas stalls)
STEPS = st.lists(
    st.tuples(
        st.sampled_from([0.5, 1.0, 3.0, 9.0, 16.0, 40.0]),
        st.integers(0, REPLICAS - 1),
        st.sampled_from([*State, "stop", 5.0, 20.0, 60.0]),
    ),
    max_size=12,
)


@dataclass
class WriteTransport:
    """Records the writes without the lease; a stalled process sends its write much later."""

    lease: LeaseTransport
    identity: str
    violations: list[str]

    async def send(self, request: Request) -> Response:
        if self.lease.state is State.STUCK:
            await sleep_uncancelled(STALL)
        else:
            await asyncio.sleep(self.lease.delay)
        request.fence()
        if self.lease.server.spec["holderIdentity"] != self.identity:
            self.violations.append(f"{self.identity} writes without the lease")
        return Response(status=200)

    def open(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        raise NotImplementedError


@dataclass
class Cluster:
    """The lease, the leader that works, and what must not happen."""

    server: LeaseServer = field(default_factory=LeaseServer)
    leaders: set[str] = field(default_factory=set)
    violations: list[str] = field(default_factory=list)

    async def work(self, elector: LeaderElector, transport: LeaseTransport) -> None:
        if self.leaders:
            self.violations.append(f"{elector.identity} starts while {self.leaders} leads")
        self.leaders.add(elector.identity)
        inner = WriteTransport(transport, elector.identity, self.violations)
        writes = LeaderTransport(inner, is_leader=lambda: elector.is_leader)
        try:
            while True:
                with contextlib.suppress(Transient):
                    await writes.send(Request(method="PATCH", path="/work"))
                await asyncio.sleep(0.5)
        finally:
            self.leaders.discard(elector.identity)

    async def replica(self, name: str, transport: LeaseTransport, managers: dict[str, Manager]) -> None:
        """Run a manager, and another whenever it ends."""
        for restart in range(1000):
            elector = candidate(transport, f"{name}-{restart}")
            manager = Manager(elector=elector, kill=partial(self.leaders.discard, elector.identity))
            manager.add(Stage.LEADER, elector.identity, partial(self.work, elector, transport))
            managers[name] = manager
            with contextlib.suppress(LeaseLost, ShutdownTimeout):
                await manager.run()
            await asyncio.sleep(1)


@settings(max_examples=25, deadline=None)
@example(steps=[(40.0, 0, State.STUCK), (40.0, 1, State.HEALTHY)])
@given(steps=STEPS)
@pytest.mark.full
def test_there_are_never_two_leaders_and_finally_one(steps: list[tuple[float, int, State | str | float]]) -> None:
    async def run_steps() -> None:
        cluster = Cluster()
        transports = [LeaseTransport(cluster.server) for _ in range(REPLICAS)]
        managers: dict[str, Manager] = {}
        async with asyncio.TaskGroup() as group:
            replicas = [
                group.create_task(cluster.replica(str(number), transport, managers))
                for number, transport in enumerate(transports)
            ]
            for seconds, number, event in steps:
                await asyncio.sleep(seconds)
                if isinstance(event, State):
                    transports[number].state = event
                elif isinstance(event, float):
                    loop = asyncio.get_running_loop()
                    assert isinstance(loop, VirtualEventLoop)
                    loop.jump(event)
                elif not managers[str(number)]._stopping.is_set():
                    managers[str(number)].stop()
            for transport in transports:
                transport.state = State.HEALTHY
            # 100 s for the last stuck request, then a lease duration, a poll and a restart.
            await asyncio.sleep(100 + 15 + 4.4 + 2)
            assert len(cluster.leaders) == 1
            assert cluster.violations == []
            for replica in replicas:
                replica.cancel()

    run(run_steps())
