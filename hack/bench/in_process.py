"""A whole upgrade in this process, in virtual time unless the event loop is real, with all requests recorded."""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry

import upgrade_manager.pipeline.reconciler_factory  # noqa: F401  # not during the first run
from hack.bench.recorder import Recorder
from hack.cluster.embedded_backend import virtual_backend
from hack.simulation import Simulation
from upgrade_manager.cli.application import build_manager
from upgrade_manager.cli.environment import Environment
from upgrade_manager.cli.options import RunOptions
from upgrade_manager.kube import objects
from upgrade_manager.kube.informer import Informer
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.resources import UPGRADE_PLANS
from upgrade_manager.preflight.kubelets import DirectKubelets
from upgrade_manager.runtime.metrics import Metrics

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from datetime import datetime

    from hack.cluster.backend import Backend
    from hack.scenario import Scenario
    from upgrade_manager.kube.store import Change
    from upgrade_manager.kube.transport import Transport

#: The prefix of the manager's User-Agent.
MANAGER = "harvester-upgrade-manager/"
PLAN = "bench"
#: Virtual seconds that an upgrade may take.
UPGRADE_TIMEOUT = 24 * 3600.0


class BenchError(Exception):
    """A benchmark's upgrade or process failed."""


def plan_manifest(**spec: Any) -> dict[str, Any]:
    """Return the plan that all benchmarks create, with these fields of the spec."""
    kind = UPGRADE_PLANS
    head = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": PLAN}}
    return {**head, "spec": {"version": "v1.8.0", **spec}}


@dataclass(frozen=True, slots=True)
class LoopClock:
    """The clock of a simulation."""

    simulation: Simulation

    def now(self) -> datetime:
        """Return the simulation's wall time."""
        return self.simulation.now()

    def monotonic(self) -> float:
        """Return the loop's time."""
        return asyncio.get_running_loop().time()


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgrade:
    """A finished upgrade; the manager and the cluster still run."""

    #: Of all clients, including the actors.
    recorder: Recorder
    #: Seconds of real time from the creation of the plan to its success.
    wall: float


@contextlib.asynccontextmanager
async def upgraded(
    scenario: Scenario,
    *,
    seed: int = 0,
    scale: float = 1.0,
    backend: Callable[[int], Backend] = virtual_backend,
    options: RunOptions | None = None,
    spec: Mapping[str, Any] | None = None,
) -> AsyncIterator[Upgrade]:
    """Upgrade a simulated cluster, with these options of the manager. Raises BenchError when the upgrade fails."""
    async with (
        Simulation(scenario, seed=seed, scale=scale, backend=backend) as simulation,
        manager(simulation, simulation.transport(), options=options),
    ):
        recorder = record(simulation)
        wall = await run_plan(simulation, **(spec or {}))
        yield Upgrade(recorder=recorder, wall=wall)


async def run_plan(simulation: Simulation, **spec: Any) -> float:
    """Create the plan, wait for its success and return the seconds of real time. Raises BenchError when it fails."""
    end = _PlanEnd()
    informer = Informer(
        simulation.client("bench"), Selection(resource=UPGRADE_PLANS), handlers=(end,), random=Random(0)
    )
    async with asyncio.TaskGroup() as group:
        task = group.create_task(informer.run())
        await informer.wait_for_sync()
        began = time.perf_counter()
        await simulation.apply(plan_manifest(**spec))
        async with asyncio.timeout(UPGRADE_TIMEOUT):
            phase = await end.phase
        wall = time.perf_counter() - began
        task.cancel()
    if phase != "Succeeded":
        raise BenchError(f"the upgrade ended as {phase}: {end.message}")
    return wall


def record(simulation: Simulation) -> Recorder:
    """Record all requests to the simulation's server from now on, of all clients."""
    server = simulation.backend.transport
    recorder = Recorder(_Original(server))
    # All clients hold the server itself, so its two methods are replaced.
    vars(server).update(send=recorder.send, open=recorder.open)
    return recorder


class _Original:
    """The server's methods before their replacement."""

    def __init__(self, server: object) -> None:
        self.send = server.send  # type: ignore[attr-defined]
        self.open = server.open  # type: ignore[attr-defined]


class _PlanEnd:
    """An informer's handler that waits for the plan's last phase."""

    def __init__(self) -> None:
        self.phase: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.message = ""

    def __call__(self, change: Change) -> None:
        phase = objects.status(change.obj).get("currentPhase", "")
        if objects.name(change.obj) == PLAN and phase in {"Succeeded", "Failed"} and not self.phase.done():
            self.message = objects.condition(change.obj, "Progressing").get("message", "")
            self.phase.set_result(phase)


@contextlib.asynccontextmanager
async def manager(
    simulation: Simulation, transport: Transport, *, options: RunOptions | None = None
) -> AsyncIterator[None]:
    """Run a manager that reaches the simulated cluster by a transport."""
    environment = Environment(
        transport=transport,
        lease=transport,
        repository=simulation.repository,
        certificates=simulation.certificates,
        kubelets=DirectKubelets(simulation.kubelets),
        clock=LoopClock(simulation),
        random=Random(simulation.seed),
    )
    running = build_manager(environment, options or RunOptions(), Metrics(CollectorRegistry()))
    async with asyncio.TaskGroup() as group:
        group.create_task(running.run(), name="manager")
        yield
        running.stop()
