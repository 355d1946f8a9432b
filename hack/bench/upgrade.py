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
    from collections.abc import Sequence

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
    small, large = (_each_node(runs, *sizes) for sizes in (SMALL, LARGE))
    return [
        *request_figures(three),
        Figure(name="requests for each node, three-node upgrade", value=small, unit="", target=40),
        Figure(name="requests for each node, 100-node upgrade", value=large, unit="", target=40),
        Figure(name="ratio of the two", value=max(small, large) / min(small, large), unit="", target=1.1),
    ]


def request_figures(exchanges: Sequence[Exchange], *, prefix: str = "") -> list[Figure]:
    """Return the counts of a three-node upgrade, for the embedded API server and for real.py."""
    pair = sum(exchange.is_of_release_pair for exchange in exchanges)
    writes = sum(exchange.writes_status for exchange in exchanges)
    conflicts = sum(exchange.status == CONFLICT for exchange in exchanges)
    return [
        Figure(name=f"{prefix}requests of a three-node upgrade", value=len(exchanges) - pair, unit="", target=120),
        Figure(name=f"{prefix}requests that the pair of releases adds", value=pair, unit="", target=20),
        Figure(name=f"{prefix}writes of status in it", value=writes, unit="", target=50),
        Figure(name=f"{prefix}responses 409 in it", value=conflicts, unit="", target=0),
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
