"""Whole simulated clusters for tests that run on both API servers."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, Protocol, Self

from hack.control_plane.backend import RealBackend
from hack.simulation import Simulation
from tests.support.cluster_reset import reset
from upgrade_manager.kube.client import Client

if TYPE_CHECKING:
    from hack.cluster.scenario import Scenario
    from hack.control_plane.control_plane import ControlPlane

#: The factor of durations on the real server, which pass in real time.
PACE = 0.02


class Simulate(Protocol):
    """Makes a cluster, as `Simulation` does."""

    def __call__(self, scenario: str | Scenario = "three-nodes", *, scale: float = 1.0, **more: Any) -> Simulation:
        """On the test's API server."""
        ...


class SharedBackend(RealBackend):
    """The worker's control plane, empty."""

    def __init__(self, plane: ControlPlane) -> None:
        super().__init__(plane)
        self._shared = plane

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        await reset(self._shared, self.transport, Client(self.transport, user_agent="reset", random=Random()))
        return self


def simulate_on(plane: ControlPlane) -> Simulate:
    """On the real server, at its pace."""

    def simulate(scenario: str | Scenario = "three-nodes", *, scale: float = 1.0, **more: Any) -> Simulation:
        return Simulation(scenario, scale=scale * PACE, backend=lambda _: SharedBackend(plane), **more)

    return simulate


embedded: Simulate = partial(Simulation)
