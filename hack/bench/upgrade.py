"""An upgrade in process: how long it takes, and how much of that is the API server's own work."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from hack import scenario as scenarios
from hack import virtualtime
from hack.bench.figure import Figure
from hack.bench.inprocess import upgraded
from hack.bench.replay import replay
from hack.simulation import Simulation

if TYPE_CHECKING:
    from hack.bench.recorder import Exchange

#: Runs of each kind; the fastest counts, because the machine can only make things slower.
RUNS = 3


def measure() -> list[Figure]:
    """Run at the scenario's pace, at once, and as bare requests."""
    wall = min(virtualtime.run(_upgrade(scale=1.0))[0] for _ in range(RUNS))
    ratios = [_ratio() for _ in range(RUNS)]
    return [
        Figure(name="three-node upgrade in process, virtual time", value=wall, unit="s", aim=1),
        Figure(name="the same with instant actors, over its bare requests", value=min(ratios), unit="", aim=2),
    ]


def _ratio() -> float:
    wall, exchanges = virtualtime.run(_upgrade(scale=0.0))
    return wall / virtualtime.run(_bare(exchanges))


async def _upgrade(*, scale: float) -> tuple[float, list[Exchange]]:
    async with upgraded(scenarios.load("three-nodes"), scale=scale) as upgrade:
        return upgrade.wall, upgrade.recorder.exchanges


async def _bare(exchanges: list[Exchange]) -> float:
    async with Simulation("three-nodes", actors=False) as simulation:
        began = time.perf_counter()
        await replay(simulation.server, exchanges)
        return time.perf_counter() - began
