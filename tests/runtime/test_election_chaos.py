"""Several managers, one lease, and networks that break at any moment: never two at work, and always one soon after."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from hack.virtual_time import run
from tests.support.runtime_lease_server import LeaseLine, LeaseServer, Line, candidate
from upgrade_manager.runtime.leader_election import LeaseLost
from upgrade_manager.runtime.manager import Manager, ShutdownTimeout, Stage

REPLICAS = 3
#: (seconds since the step before, whose line, what happens to it)
STEPS = st.lists(
    st.tuples(
        st.sampled_from([0.5, 1.0, 3.0, 9.0, 16.0, 40.0]),
        st.integers(0, REPLICAS - 1),
        st.sampled_from([*Line, "stop"]),
    ),
    max_size=12,
)


@dataclass
class Cluster:
    """Who works, and when somebody did."""

    server: LeaseServer = field(default_factory=LeaseServer)
    working: set[str] = field(default_factory=set)
    terms: int = 0

    async def work(self, name: str) -> None:
        assert not self.working, f"{name} starts while {self.working} works"
        self.working.add(name)
        self.terms += 1
        try:
            await asyncio.sleep(1e9)
        finally:
            self.working.remove(name)

    async def replica(self, name: str, line: LeaseLine, managers: dict[str, Manager]) -> None:
        """A process that is started again whenever it ends."""
        for life in range(1000):
            identity = f"{name}-{life}"
            # Work that a stuck call belongs to dies with its process: the line of the next life is another.
            manager = Manager(elector=candidate(line, identity), kill=lambda: None)
            manager.add(Stage.LEADER, identity, lambda identity=identity: self.work(identity))  # type: ignore[misc]
            managers[name] = manager
            with contextlib.suppress(LeaseLost, ShutdownTimeout):
                await manager.run()
            await asyncio.sleep(1)


@settings(max_examples=25, deadline=None)
@given(steps=STEPS)
def test_never_two_leaders_work_and_one_does_when_the_network_is_whole(
    steps: list[tuple[float, int, Line | str]],
) -> None:
    async def play() -> None:
        cluster = Cluster()
        lines = [LeaseLine(cluster.server) for _ in range(REPLICAS)]
        managers: dict[str, Manager] = {}
        async with asyncio.TaskGroup() as group:
            replicas = [
                group.create_task(cluster.replica(str(number), line, managers)) for number, line in enumerate(lines)
            ]
            for wait, number, event in steps:
                await asyncio.sleep(wait)
                if isinstance(event, Line):
                    lines[number].line = event
                elif managers[str(number)]._stopping.is_set() is False:
                    managers[str(number)].stop()
            for line in lines:
                line.line = Line.GOOD
            # A hundred seconds for the last call that is stuck, then a lease duration, a poll and a restart.
            await asyncio.sleep(100 + 15 + 4.4 + 2)
            assert len(cluster.working) == 1
            for replica in replicas:
                replica.cancel()

    run(play())
