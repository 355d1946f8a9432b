"""API servers with outages, for a cluster that runs on them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeAlias

from hack.cluster.embedded_backend import EmbeddedBackend, virtual_backend
from hack.simulation import Simulation
from tests.support.cluster.simulate import PACE, SharedBackend

if TYPE_CHECKING:
    from hack.cluster.backend import Backend
    from hack.control_plane.control_plane import ControlPlane


class UnreliableEmbedded:
    """The embedded server, whose transport is cut."""

    def __init__(self) -> None:
        self._backend: EmbeddedBackend

    def simulate(self) -> Simulation:
        """Return a cluster of three nodes, in virtual time."""
        return Simulation("three-nodes", backend=self._make)

    def simulate_in_real_time(self) -> Simulation:
        """Return the same cluster in real time, for tests with sockets."""
        return Simulation("three-nodes", scale=PACE, backend=self._make)

    async def outage(self, seconds: float) -> None:
        """Cut the transport for so long."""
        await _outage(self._backend, seconds)

    async def forget(self) -> None:
        """Compact; open watches continue."""
        self._backend.server.compact()

    def _make(self, seed: int) -> EmbeddedBackend:
        self._backend = virtual_backend(seed)
        return self._backend


class UnreliableReal:
    """The worker's kube-apiserver, which is killed; the fixture restarts it."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._backend: SharedBackend

    def simulate(self) -> Simulation:
        """Return a cluster of three nodes."""
        return Simulation("three-nodes", scale=PACE, backend=self._make)

    def simulate_in_real_time(self) -> Simulation:
        """Return the same."""
        return self.simulate()

    async def outage(self, seconds: float) -> None:
        """Kill it for so long; a restart takes some seconds more."""
        await _outage(self._backend, seconds)

    async def forget(self) -> None:
        """Compact etcd and restart the server, whose watch cache serves old versions."""
        await self._backend.stop_api_server()
        await asyncio.to_thread(self._plane.compact)
        await self._backend.start_api_server()

    def _make(self, _: int) -> SharedBackend:
        self._backend = SharedBackend(self._plane)
        return self._backend


UnreliableServer: TypeAlias = UnreliableEmbedded | UnreliableReal


async def _outage(backend: Backend, seconds: float) -> None:
    await backend.stop_api_server()
    await asyncio.sleep(seconds)
    await backend.start_api_server()
