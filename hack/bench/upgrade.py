"""An upgrade in process: its wall time, the API server's share of it, and its requests."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from hack import virtual_time
from hack.bench.catalogue import Figure
from hack.bench.in_process import MANAGER, upgraded
from hack.bench.recorder import CONFLICT
from hack.bench.replay import Translation, replay
from hack.cluster import scenario as scenarios
from hack.cluster.embedded_backend import virtual_backend
from hack.simulation import Simulation

if TYPE_CHECKING:
    from collections.abc import Callable

    from hack.bench.in_process import Upgrade
    from hack.bench.recorder import Exchange
    from hack.cluster.backend import Backend

#: Runs of each kind; the fastest counts, because other programs only make it slower.
RUNS = 3
#: Sizes of clusters; the difference within a pair is the cost of a node.
SMALL, LARGE = (3, 6), (50, 100)
#: Virtual minutes until the upgrade has settled, and of the measurement.
SETTLE, IDLE = 10, 60


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


def measure_requests() -> list[Figure]:
    """Upgrade clusters that differ in size only."""
    runs = {count: virtual_time.run(_requests(count)) for count in (*SMALL, *LARGE)}
    three = runs[SMALL[0]]
    small, large = (_each_node(runs, *sizes) for sizes in (SMALL, LARGE))
    return [
        Figure(name="requests of a three-node upgrade", value=len(three), unit="", target=100),
        Figure(name="writes of status in it", value=sum(e.writes_status for e in three), unit="", target=50),
        Figure(name="responses 409 in it", value=sum(e.status == CONFLICT for e in three), unit="", target=0),
        Figure(name="requests for each node, three-node upgrade", value=small, unit="", target=40),
        Figure(name="requests for each node, 100-node upgrade", value=large, unit="", target=40),
        Figure(name="ratio of the two", value=max(small, large) / min(small, large), unit="", target=1.1),
    ]


def measure_idle() -> list[Figure]:
    """Finish a plan, and count the requests of the hour after it."""
    exchanges = virtual_time.run(_idle())
    writes = sum(exchange.writes_status for exchange in exchanges)
    return [
        Figure(name="idle with a finished plan: writes of status", value=writes, unit="", target=0),
        Figure(name="idle with a finished plan: requests", value=len(exchanges) / IDLE, unit="/min", target=10),
    ]


def _each_node(runs: dict[int, list[Exchange]], fewer: int, more: int) -> float:
    return (len(runs[more]) - len(runs[fewer])) / (more - fewer)


async def _requests(count: int) -> list[Exchange]:
    scenario = scenarios.load("three-nodes").changed(nodes={"count": count, "management": 3})
    async with upgraded(scenario) as upgrade:
        return upgrade.recorder.of(MANAGER)


async def _idle() -> list[Exchange]:
    async with upgraded(scenarios.load("three-nodes")) as upgrade:
        await asyncio.sleep(SETTLE * 60)
        upgrade.recorder.exchanges.clear()
        await asyncio.sleep(IDLE * 60)
        return upgrade.recorder.of(MANAGER)
