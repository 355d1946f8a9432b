"""API servers that go away under everybody who lives on them, and come back."""

from __future__ import annotations

import asyncio
import time
from random import Random
from typing import TYPE_CHECKING, Protocol

from hack.embeddedground import LEAST_LATENCY, MOST_LATENCY, EmbeddedGround, NoPoster, virtual_now
from hack.kube.controlplane import API_SERVER, CONTROLLER_MANAGER
from hack.latency import SlowTransport
from hack.line import Line
from hack.simulation import Simulation
from tests.support.simulate import PACE, simulate_on

if TYPE_CHECKING:
    from collections.abc import Callable

    from hack.kube.controlplane import ControlPlane
    from upgrade_manager.kube.transport import Transport


class Fragile(Protocol):
    """The API server whose turn it is, with a cluster on it."""

    def simulate(self) -> Simulation:
        """The cluster, of three nodes."""
        ...

    def simulate_in_real_time(self) -> Simulation:
        """The same, fast enough for a test that cannot do without sockets."""
        ...

    async def outage(self, seconds: float) -> None:
        """Be away for so long, for everybody; returns when it answers again, which may be later."""
        ...

    async def forget(self) -> None:
        """Have nothing left of what happened before; open watches may break."""
        ...


class FragileGround(EmbeddedGround):
    """The embedded server, at the end of one line for all."""

    def __init__(self, *, seed: int) -> None:
        super().__init__(seed=seed, now=virtual_now, poster=NoPoster(), least=LEAST_LATENCY, most=MOST_LATENCY)
        self.line = Line(self.server)
        self.transport = self.line
        self.front = self.line
        self._dice = Random(f"{seed}/fragile")

    def slowed(self) -> Transport:
        """By way of the line."""
        return SlowTransport(self.line, random=self._dice, least=LEAST_LATENCY, most=MOST_LATENCY)


class FragileEmbedded:
    """The embedded server behind a line that is cut."""

    def __init__(self) -> None:
        self._ground: FragileGround

    def simulate(self) -> Simulation:
        """In virtual time."""
        return Simulation("three-nodes", ground=self._make)

    def simulate_in_real_time(self) -> Simulation:
        """At the pace of the other."""
        return Simulation("three-nodes", scale=PACE, ground=self._make)

    async def outage(self, seconds: float) -> None:
        """Cut the line."""
        self._ground.line.cut()
        await asyncio.sleep(seconds)
        self._ground.line.mend()

    async def forget(self) -> None:
        """Compact, which open watches do not notice."""
        self._ground.server.compact()

    def _make(self, seed: int) -> FragileGround:
        self._ground = FragileGround(seed=seed)
        return self._ground


class FragileReal:
    """The worker's kube-apiserver, which is killed; whoever uses this starts it again in the end, come what may."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._simulate = simulate_on(plane)

    def simulate(self) -> Simulation:
        """In real time, and fast."""
        return self._simulate("three-nodes")

    def simulate_in_real_time(self) -> Simulation:
        """As ever."""
        return self.simulate()

    async def outage(self, seconds: float) -> None:
        """Kill it; a start takes some seconds more."""
        await self._restart(lambda: time.sleep(seconds))

    async def forget(self) -> None:
        """Compact etcd too: the server's own memory, which serves watches, is gone with its process."""
        await self._restart(self._plane.compact)

    async def _restart(self, meanwhile: Callable[[], None]) -> None:
        # In a cluster the controllers lose their lease and start anew too. These have none, and would wait ever longer.
        for name in (API_SERVER, CONTROLLER_MANAGER):
            await asyncio.to_thread(self._plane.kill, name)
        await asyncio.to_thread(meanwhile)
        for name in (API_SERVER, CONTROLLER_MANAGER):
            await asyncio.to_thread(self._plane.start, name)
