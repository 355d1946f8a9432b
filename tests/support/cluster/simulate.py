"""Simulated clusters for tests that run on both API servers, and a scenario whose faults a test can repair."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any, Protocol, Self

from pydantic import PrivateAttr

from hack import scenario as scenarios
from hack.control_plane.backend import RealBackend
from hack.control_plane.control_plane import ControlPlane
from hack.scenario import Fault, ImportFault, Scenario
from hack.simulation import Simulation
from tests.support.server.cluster_reset import reset
from upgrade_manager.kube.client import Client

#: The factor of durations on the real server.
PACE = 0.02


class Simulate(Protocol):
    """Makes a cluster, as `Simulation` does."""

    def __call__(self, scenario: str | Scenario = "three-nodes", *, scale: float = 1.0, **more: Any) -> Simulation:
        """Create it on the test's API server."""
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
    """Return the factory for the real server, which runs at PACE."""

    def simulate(scenario: str | Scenario = "three-nodes", *, scale: float = 1.0, **more: Any) -> Simulation:
        return Simulation(scenario, scale=scale * PACE, backend=lambda _: SharedBackend(plane), **more)

    return simulate


embedded: Simulate = partial(Simulation)


#: The second node that Rancher upgrades with seed 0.
SECOND = "node-2"
#: The termination message of a container that fails.
TERMINATION_MESSAGE = "first line\nthe last words"
#: The system-upgrade-controller retries a hundred times by default, for hours.
_FEW_RETRIES = {"backoff_limit": 1}


def fault(work: str, node: str = "") -> dict[str, Any]:
    """Return scenario changes that make containers with that work fail, on one node or all."""
    return {
        "faults": [{"work": work, "node": node, "message": TERMINATION_MESSAGE}],
        "upgrade_controller": _FEW_RETRIES,
    }


#: The fields of a scenario that `fault` changes.
_FAULTS = ("faults", "upgrade_controller")


class RepairableScenario(Scenario):
    """A scenario whose containers, imports and disks are as they should be after `repair`."""

    _is_repaired: bool = PrivateAttr(default=False)
    _next: tuple[Fault, ...] = PrivateAttr(default=())

    @classmethod
    def of(cls, name: str = "three-nodes", **faults: Any) -> Self:
        """Load the scenario of that name with these changes."""
        return cls.model_validate(scenarios.load(name).changed(**faults).model_dump())

    def repair(self) -> None:
        self._is_repaired, self._next = True, ()
        # The actors read the fields of a model that others cannot change.
        self.__dict__["image_import"] = None
        self.__dict__["nodes"] = self.nodes.model_copy(update={"disks": {}})

    def without_faults(self) -> Self:
        """Return the scenario as if nothing had ever failed."""
        self.repair()
        usual: dict[str, Any] = {name: type(self).model_fields[name].get_default() for name in _FAULTS}
        return self.model_copy(update=usual)

    def fail_next(self, work: str, node: str = "") -> None:
        """Let containers with that work fail from now on, and no others."""
        self.repair()
        self._next = (Fault(work=work, node=node, message=TERMINATION_MESSAGE),)

    def fail_next_import(self) -> None:
        """Let no image be imported from now on."""
        self.repair()
        self.__dict__["image_import"] = ImportFault(attempts=99)

    def fault_of(self, work: str, node: str) -> Fault | None:
        """Return None after the repair, but for what fails next."""
        if not self._is_repaired:
            return super().fault_of(work, node)
        return next((one for one in self._next if one.work == work and one.node in {"", node}), None)
