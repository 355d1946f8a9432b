"""API servers that go away under everybody who lives on them, and come back."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from hack.cluster.embedded_backend import EmbeddedGround, virtual_ground
from hack.simulation import Simulation
from tests.support.simulate import PACE, SharedGround

if TYPE_CHECKING:
    from hack.cluster.backend import Ground
    from hack.control_plane.control_plane import ControlPlane


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


class FragileEmbedded:
    """The embedded server, whose line is cut."""

    def __init__(self) -> None:
        self._ground: EmbeddedGround

    def simulate(self) -> Simulation:
        """In virtual time."""
        return Simulation("three-nodes", ground=self._make)

    def simulate_in_real_time(self) -> Simulation:
        """At the pace of the other."""
        return Simulation("three-nodes", scale=PACE, ground=self._make)

    async def outage(self, seconds: float) -> None:
        """Cut the line."""
        await _outage(self._ground, seconds)

    async def forget(self) -> None:
        """Compact, which open watches do not notice."""
        self._ground.server.compact()

    def _make(self, seed: int) -> EmbeddedGround:
        self._ground = virtual_ground(seed)
        return self._ground


class FragileReal:
    """The worker's kube-apiserver, which is killed; whoever uses this starts it again in the end, come what may."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._ground: SharedGround

    def simulate(self) -> Simulation:
        """In real time, and fast."""
        return Simulation("three-nodes", scale=PACE, ground=self._make)

    def simulate_in_real_time(self) -> Simulation:
        """As ever."""
        return self.simulate()

    async def outage(self, seconds: float) -> None:
        """Kill it; a start takes some seconds more."""
        await _outage(self._ground, seconds)

    async def forget(self) -> None:
        """Compact etcd too: the server's own memory, which serves watches, is gone with its process."""
        await self._ground.fall()
        await asyncio.to_thread(self._plane.compact)
        await self._ground.rise()

    def _make(self, _: int) -> SharedGround:
        self._ground = SharedGround(self._plane)
        return self._ground


async def _outage(ground: Ground, seconds: float) -> None:
    await ground.fall()
    await asyncio.sleep(seconds)
    await ground.rise()
