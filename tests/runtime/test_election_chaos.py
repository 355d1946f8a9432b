"""Several managers, one lease, and breaking networks: never two leaders, and one again soon after the repair."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from hack.virtual_time import run
from tests.support.runtime_lease_server import LeaseServer, LeaseTransport, State, candidate
from upgrade_manager.runtime.leader_election import LeaseLost
from upgrade_manager.runtime.manager import Manager, ShutdownTimeout, Stage

REPLICAS = 3
#: (seconds since the last step, replica, new state of its transport or a stop of its manager)
STEPS = st.lists(
    st.tuples(
        st.sampled_from([0.5, 1.0, 3.0, 9.0, 16.0, 40.0]),
        st.integers(0, REPLICAS - 1),
        st.sampled_from([*State, "stop"]),
    ),
    max_size=12,
)


@dataclass
class Cluster:
    """The lease, and the leader that works."""

    server: LeaseServer = field(default_factory=LeaseServer)
    leaders: set[str] = field(default_factory=set)

    async def work(self, name: str) -> None:
        assert not self.leaders, f"{name} starts while {self.leaders} leads"
        self.leaders.add(name)
        try:
            await asyncio.sleep(1e9)
        finally:
            self.leaders.remove(name)

    async def replica(self, name: str, transport: LeaseTransport, managers: dict[str, Manager]) -> None:
        """Run a manager, and another whenever it ends."""
        for restart in range(1000):
            identity = f"{name}-{restart}"
            manager = Manager(elector=candidate(transport, identity), kill=lambda: None)
            manager.add(Stage.LEADER, identity, lambda identity=identity: self.work(identity))  # type: ignore[misc]
            managers[name] = manager
            with contextlib.suppress(LeaseLost, ShutdownTimeout):
                await manager.run()
            await asyncio.sleep(1)


@settings(max_examples=25, deadline=None)
@given(steps=STEPS)
def test_there_are_never_two_leaders_and_finally_one(steps: list[tuple[float, int, State | str]]) -> None:
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
                elif not managers[str(number)]._stopping.is_set():
                    managers[str(number)].stop()
            for transport in transports:
                transport.state = State.HEALTHY
            # 100 s for the last stuck request, then a lease duration, a poll and a restart.
            await asyncio.sleep(100 + 15 + 4.4 + 2)
            assert len(cluster.leaders) == 1
            for replica in replicas:
                replica.cancel()

    run(run_steps())
