"""An upgrade in process: its wall time, and the API server's share of it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from hack import virtual_time
from hack.bench.catalogue import Figure
from hack.bench.in_process import upgraded
from hack.bench.replay import Translation, replay
from hack.cluster import scenario as scenarios
from hack.cluster.embedded_backend import virtual_backend
from hack.simulation import Simulation

if TYPE_CHECKING:
    from collections.abc import Callable

    from hack.bench.in_process import Upgrade
    from hack.cluster.backend import Backend

#: Runs of each kind; the fastest counts, because other programs only make it slower.
RUNS = 3


def measure() -> list[Figure]:
    """Run at the scenario's pace, with instant actors, and as replayed requests."""
    wall = min(virtual_time.run(_upgrade(scale=1.0)).wall for _ in range(RUNS))
    ratio = min(_ratio() for _ in range(RUNS))
    return [
        Figure(name="three-node upgrade in process, virtual time", value=wall, unit="s", target=1),
        Figure(name="the same with instant actors, over its requests replayed", value=ratio, unit="", target=2),
    ]


def _ratio() -> float:
    run = virtual_time.run(_upgrade(scale=0.0))
    return run.wall / virtual_time.run(replayed(run))


async def _upgrade(*, scale: float) -> Upgrade:
    async with upgraded(scenarios.load("three-nodes"), scale=scale) as upgrade:
        return upgrade


async def replayed(run: Upgrade, *, backend: Callable[[int], Backend] = virtual_backend) -> float:
    """Return the seconds that a three-node upgrade's requests take on a fresh server without other clients."""
    async with Simulation("three-nodes", actors=False, backend=backend) as simulation:
        translation = Translation()
        translation.learn_objects(run.initial_objects, await simulation.backend.objects())
        began = time.perf_counter()
        await replay(simulation.backend.transport, run.recorder.exchanges, translation)
        return time.perf_counter() - began
