"""Requests of upgrades on a real API server."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from hack import scenario as scenarios
from hack.bench.catalogue import Figure
from hack.bench.in_process import MANAGER, upgraded
from hack.bench.real_cluster import SimulatedBackend
from hack.bench.upgrade import request_figures
from hack.control_plane.assets import find_assets
from hack.control_plane.backend import RealBackend
from hack.control_plane.control_plane import ControlPlane
from upgrade_manager.api.node_states import NodeState

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hack.bench.recorder import Exchange
    from hack.cluster.backend import Backend
    from hack.control_plane.assets import Assets
    from hack.scenario import Scenario

#: Sizes of clusters by which the requests for each node are measured. The benchmark `scale` has a larger one.
SMALL, *LARGER = SIZES = 3, 16, 100
_UPGRADED = f'"state":"{NodeState.POST_DRAINED.value}"'.encode()


def measure() -> list[Figure]:
    """Run every upgrade on a new control plane, one of them with the real controllers. Raises AssetsError."""
    assets = find_assets(os.environ)
    exchanges = _upgraded(assets, SMALL, backend=RealBackend, scale=1.0)
    costs = {size: requests_per_node(_upgraded(assets, size)) for size in SIZES}
    growth = max(costs[size] for size in LARGER) / costs[SMALL]
    return [
        *request_figures(exchanges, prefix="real server: "),
        *(
            Figure(name=f"real server: requests for each of {size} nodes", value=cost, unit="", target=40)
            for size, cost in costs.items()
        ),
        Figure(name="real server: largest cluster over the smallest", value=growth, unit="", target=1.1),
    ]


def requests_per_node(exchanges: Sequence[Exchange]) -> float:
    """Return the requests for each node after the first.

    They are counted from the record of the first upgraded node to that of the last, which excludes the requests of
    the upgrade as a whole.
    """
    counts = [exchange.request.body.count(_UPGRADED) if exchange.writes_status else 0 for exchange in exchanges]
    records = [place for place, count in enumerate(counts) if count]
    return (records[-1] - records[0]) / (sum(counts) - counts[records[0]])


def _upgraded(
    assets: Assets, nodes: int, *, backend: Callable[[ControlPlane], Backend] = SimulatedBackend, scale: float = 0.0
) -> list[Exchange]:
    scenario = scenarios.load("three-nodes").changed(nodes={"count": nodes, "management": 3})
    with ControlPlane(assets) as plane:
        return asyncio.run(_run(scenario, lambda _: backend(plane), scale=scale))


async def _run(scenario: Scenario, backend: Callable[[int], Backend], *, scale: float) -> list[Exchange]:
    async with upgraded(scenario, scale=scale, backend=backend) as upgrade:
        return upgrade.recorder.of(MANAGER)
