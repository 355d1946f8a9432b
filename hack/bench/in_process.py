"""A whole upgrade in this process and in virtual time, with everything that passes taken down."""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry

from hack.bench.desk import PLAN, BenchError, plan_manifest
from hack.bench.recorder import Recorder
from hack.cluster.embedded_backend import virtual_backend
from hack.simulation import Simulation
from upgrade_manager.cli.application import Environment, build_manager
from upgrade_manager.cli.options import RunOptions
from upgrade_manager.kube import objects
from upgrade_manager.kube.informer import Informer
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.resources import UPGRADE_PLANS
from upgrade_manager.runtime.metrics import Metrics

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from datetime import datetime

    from hack.cluster.backend import Backend
    from hack.cluster.scenario import Scenario
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.store import Change
    from upgrade_manager.kube.transport import Transport

#: Virtual seconds after which an upgrade counts as stuck.
PATIENCE = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class LoopClock:
    """The clock of a simulation."""

    simulation: Simulation

    def now(self) -> datetime:
        """The virtual wall time."""
        return self.simulation.now()

    def monotonic(self) -> float:
        """The loop's time."""
        return asyncio.get_running_loop().time()


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgrade:
    """A finished run; the manager and the cluster still run."""

    #: Of all clients: the actors' too.
    recorder: Recorder
    #: Seconds of real time from the creation of the plan to its success.
    wall: float
    #: All objects before the plan.
    planted: list[Object]


@contextlib.asynccontextmanager
async def upgraded(
    scenario: Scenario, *, seed: int = 0, scale: float = 1.0, backend: Callable[[int], Backend] = virtual_backend
) -> AsyncIterator[Upgrade]:
    """Upgrade a simulated cluster; raises BenchError when the upgrade fails."""
    async with Simulation(scenario, seed=seed, scale=scale, backend=backend) as simulation:
        planted = await simulation.backend.objects()
        async with manager(simulation, simulation.transport()):
            recorder = tap(simulation)
            wall = await finished(simulation)
            yield Upgrade(recorder=recorder, wall=wall, planted=planted)


async def finished(simulation: Simulation) -> float:
    """Create the plan and wait for its end; seconds of real time that it took. Raises BenchError when it fails."""
    ended = _Ended()
    async with _informed(simulation, ended):
        began = time.perf_counter()
        await simulation.apply(plan_manifest())
        async with asyncio.timeout(PATIENCE):
            phase = await ended.phase
        wall = time.perf_counter() - began
    if phase != "Succeeded":
        raise BenchError(f"the upgrade ended as {phase}: {ended.message}")
    return wall


def tap(simulation: Simulation) -> Recorder:
    """Take down what the simulation's server is asked from now on, by whomever."""
    server = simulation.backend.transport
    recorder = Recorder(_Original(server))
    # Everybody holds the server itself, so it is the server whose two methods are wrapped.
    vars(server).update(send=recorder.send, open=recorder.open)
    return recorder


class _Original:
    """The server's own methods, whatever is put over them later."""

    def __init__(self, server: object) -> None:
        self.send = server.send  # type: ignore[attr-defined]
        self.open = server.open  # type: ignore[attr-defined]


class _Ended:
    """Hears of the plan's changes, and waits for the last."""

    def __init__(self) -> None:
        self.phase: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.message = ""

    def __call__(self, change: Change) -> None:
        phase = objects.status(change.obj).get("currentPhase", "")
        if objects.name(change.obj) == PLAN and phase in {"Succeeded", "Failed"} and not self.phase.done():
            self.message = (objects.condition(change.obj, "Progressing") or {}).get("message", "")
            self.phase.set_result(phase)


@contextlib.asynccontextmanager
async def manager(simulation: Simulation, transport: Transport) -> AsyncIterator[None]:
    """Run a manager on the simulated cluster, which it reaches by that transport."""
    environment = Environment(
        transport=transport,
        repository=simulation.repository,
        certificates=simulation.certificates,
        clock=LoopClock(simulation),
        random=Random(simulation.seed),
    )
    running = build_manager(environment, RunOptions(), Metrics(CollectorRegistry()))
    async with asyncio.TaskGroup() as group:
        group.create_task(running.run(), name="manager")
        yield
        running.stop()


@contextlib.asynccontextmanager
async def _informed(simulation: Simulation, ended: _Ended) -> AsyncIterator[None]:
    informer = Informer(
        simulation.client("bench"), Selection(resource=UPGRADE_PLANS), handlers=(ended,), random=Random(0)
    )
    async with asyncio.TaskGroup() as group:
        task = group.create_task(informer.run())
        await informer.wait_for_sync()
        yield
        task.cancel()
