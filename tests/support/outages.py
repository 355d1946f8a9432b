"""API servers that go away under everybody who lives on them, and come back."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from hack.cluster.embedded_backend import EmbeddedBackend, virtual_backend
from hack.simulation import Simulation
from tests.support.simulate import PACE, SharedBackend

if TYPE_CHECKING:
    from hack.cluster.backend import Backend
    from hack.control_plane.control_plane import ControlPlane


class UnreliableServer(Protocol):
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


class UnreliableEmbedded:
    """The embedded server, whose line is cut."""

    def __init__(self) -> None:
        self._backend: EmbeddedBackend

    def simulate(self) -> Simulation:
        """In virtual time."""
        return Simulation("three-nodes", backend=self._make)

    def simulate_in_real_time(self) -> Simulation:
        """At the pace of the other."""
        return Simulation("three-nodes", scale=PACE, backend=self._make)

    async def outage(self, seconds: float) -> None:
        """Cut the line."""
        await _outage(self._backend, seconds)

    async def forget(self) -> None:
        """Compact, which open watches do not notice."""
        self._backend.server.compact()

    def _make(self, seed: int) -> EmbeddedBackend:
        self._backend = virtual_backend(seed)
        return self._backend


class UnreliableReal:
    """The worker's kube-apiserver, which is killed; whoever uses this starts it again in the end, come what may."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._backend: SharedBackend

    def simulate(self) -> Simulation:
        """In real time, and fast."""
        return Simulation("three-nodes", scale=PACE, backend=self._make)

    def simulate_in_real_time(self) -> Simulation:
        """As ever."""
        return self.simulate()

    async def outage(self, seconds: float) -> None:
        """Kill it; a start takes some seconds more."""
        await _outage(self._backend, seconds)

    async def forget(self) -> None:
        """Compact etcd too: the server's own memory, which serves watches, is gone with its process."""
        await self._backend.stop_api_server()
        await asyncio.to_thread(self._plane.compact)
        await self._backend.start_api_server()

    def _make(self, _: int) -> SharedBackend:
        self._backend = SharedBackend(self._plane)
        return self._backend


async def _outage(backend: Backend, seconds: float) -> None:
    await backend.stop_api_server()
    await asyncio.sleep(seconds)
    await backend.start_api_server()
