"""An upgrade of three nodes on a real API server: what our side adds, and what the manager asks for."""

from __future__ import annotations

import asyncio
import os
import statistics
from typing import TYPE_CHECKING

from hack.bench.desk import MANAGER
from hack.bench.figure import Figure
from hack.bench.in_process import upgraded
from hack.bench.node_cost import each_node
from hack.bench.recorder import CONFLICT
from hack.bench.simulated_backend import SimulatedBackend
from hack.bench.upgrade import bare
from hack.cluster import scenario as scenarios
from hack.control_plane.assets import find_assets
from hack.control_plane.backend import RealBackend
from hack.control_plane.control_plane import ControlPlane

if TYPE_CHECKING:
    from collections.abc import Callable

    from hack.bench.in_process import Upgrade
    from hack.cluster.backend import Backend
    from hack.cluster.scenario import Scenario
    from hack.control_plane.assets import Assets

#: Pairs of an upgrade and its replay; the median counts.
RUNS = 3
#: Sizes of clusters; the figure is what a node costs in each. For a larger one there is the benchmark `scale`.
SMALL, LARGER = 3, (16, 100)


def measure() -> list[Figure]:
    """Run every upgrade on a new control plane. Raises AssetsError.

    The ratio's upgrade has instant actors, and they play kube-controller-manager's part too: the real one gathers Job
    events for a second by the clock, which is neither our work nor any. Its replay sends what the manager and all
    actors have sent, reads and watches included, one request after the other, to a server with the same objects and
    nobody else. So the ratio is all that thinking, waiting for watch events and reading them costs; requests that
    overlap in the upgrade are its gain. The requests are counted at the scenario's pace with the real controllers.
    """
    assets = find_assets(os.environ)
    pairs = [_pair(assets) for _ in range(RUNS)]
    ratios = [run.wall / seconds for run, seconds in pairs]
    asked = _upgraded(assets, SMALL, backend=RealBackend, scale=1.0).recorder.of(MANAGER)
    # Of three nodes only two come after the first, so one run says little.
    costs = {SMALL: statistics.mean(each_node(run.recorder.of(MANAGER)) for run, _ in pairs)}
    costs |= {size: each_node(_upgraded(assets, size).recorder.of(MANAGER)) for size in LARGER}
    written = sum(exchange.writes_status for exchange in asked)
    conflicts = sum(exchange.status == CONFLICT for exchange in asked)
    # That a node costs less among many is welcome: where actors are instant, several of its states fit into one write.
    growth = max(costs[size] for size in LARGER) / costs[SMALL]
    return [
        Figure(name="real server: upgrade over its bare requests", value=statistics.median(ratios), unit="", aim=2),
        Figure(name="real server: requests of a three-node upgrade", value=len(asked), unit="", aim=100),
        Figure(name="real server: writes of status in it", value=written, unit="", aim=50),
        Figure(name="real server: answers 409 in it", value=conflicts, unit="", aim=0),
        *(
            Figure(name=f"real server: requests for each of {size} nodes", value=cost, unit="", aim=40)
            for size, cost in costs.items()
        ),
        Figure(name="real server: the most in a larger one over the smallest's", value=growth, unit="", aim=1.1),
    ]


def _pair(assets: Assets) -> tuple[Upgrade, float]:
    """An upgrade, and the seconds that its bare requests take right after it."""
    run = _upgraded(assets, SMALL)
    with ControlPlane(assets) as plane:
        return run, asyncio.run(bare(run, backend=lambda _: SimulatedBackend(plane)))


def _upgraded(
    assets: Assets, nodes: int, *, backend: Callable[[ControlPlane], Backend] = SimulatedBackend, scale: float = 0.0
) -> Upgrade:
    scenario = scenarios.load("three-nodes").changed(nodes={"count": nodes, "management": 3})
    with ControlPlane(assets) as plane:
        return asyncio.run(_run(scenario, lambda _: backend(plane), scale=scale))


async def _run(scenario: Scenario, backend: Callable[[int], Backend], *, scale: float) -> Upgrade:
    async with upgraded(scenario, scale=scale, backend=backend) as upgrade:
        return upgrade
