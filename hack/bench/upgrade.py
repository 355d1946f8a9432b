"""An upgrade in process: wall time and requests."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from hack import scenario as scenarios
from hack import virtual_time
from hack.bench.catalogue import Figure
from hack.bench.in_process import MANAGER, upgraded
from hack.bench.recorder import CONFLICT

if TYPE_CHECKING:
    from hack.bench.recorder import Exchange

#: Runs; the fastest counts, because other programs only make it slower.
RUNS = 3
#: Sizes of clusters; the difference within a pair is the cost of a node.
SMALL, LARGE = (3, 6), (50, 100)
#: Virtual minutes until the upgrade has settled, and of the measurement.
SETTLE, IDLE = 10, 60


def measure() -> list[Figure]:
    """Run several upgrades at the scenario's pace."""
    wall = min(virtual_time.run(_wall()) for _ in range(RUNS))
    return [Figure(name="three-node upgrade in process, virtual time", value=wall, unit="s", target=1)]


async def _wall() -> float:
    async with upgraded(scenarios.load("three-nodes")) as upgrade:
        return upgrade.wall


def measure_requests() -> list[Figure]:
    """Upgrade clusters that differ in size only."""
    runs = {count: virtual_time.run(_requests(count)) for count in (*SMALL, *LARGE)}
    three = runs[SMALL[0]]
    pair = sum(exchange.is_of_release_pair for exchange in three)
    small, large = (_each_node(runs, *sizes) for sizes in (SMALL, LARGE))
    return [
        Figure(name="requests of a three-node upgrade", value=len(three) - pair, unit="", target=120),
        Figure(name="requests that the pair of releases adds", value=pair, unit="", target=20),
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
