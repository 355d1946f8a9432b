"""An upgrade in process: how long it takes, and how much of that is the API server's own work."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from hack import virtual_time
from hack.bench.figure import Figure
from hack.bench.in_process import upgraded
from hack.bench.replay import replay
from hack.bench.translation import Translation
from hack.cluster import scenario as scenarios
from hack.cluster.embedded_backend import virtual_backend
from hack.simulation import Simulation

if TYPE_CHECKING:
    from collections.abc import Callable

    from hack.bench.in_process import Upgrade
    from hack.cluster.backend import Backend

#: Runs of each kind; the fastest counts, because the machine can only make things slower.
RUNS = 3


def measure() -> list[Figure]:
    """Run at the scenario's pace, at once, and as bare requests."""
    wall = min(virtual_time.run(_upgrade(scale=1.0)).wall for _ in range(RUNS))
    ratios = [_ratio() for _ in range(RUNS)]
    return [
        Figure(name="three-node upgrade in process, virtual time", value=wall, unit="s", aim=1),
        Figure(name="the same with instant actors, over its bare requests", value=min(ratios), unit="", aim=2),
    ]


def _ratio() -> float:
    run = virtual_time.run(_upgrade(scale=0.0))
    return run.wall / virtual_time.run(bare(run))


async def _upgrade(*, scale: float) -> Upgrade:
    async with upgraded(scenarios.load("three-nodes"), scale=scale) as upgrade:
        return upgrade


async def bare(run: Upgrade, *, backend: Callable[[int], Backend] = virtual_backend) -> float:
    """Seconds for what an upgrade of three nodes has asked, on a fresh server that nobody else speaks to."""
    async with Simulation("three-nodes", actors=False, backend=backend) as simulation:
        translation = Translation()
        translation.learn_objects(run.planted, await simulation.backend.objects())
        began = time.perf_counter()
        await replay(simulation.backend.transport, run.recorder.exchanges, translation)
        return time.perf_counter() - began
