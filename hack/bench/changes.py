"""The time from the object that a phase waits for to the next phase's first write."""

from __future__ import annotations

import asyncio
import os
import statistics
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from hack.bench.catalogue import Figure
from hack.bench.in_process import MANAGER
from hack.bench.local_processes import UPGRADE_TIMEOUT
from hack.bench.phase_changes import AWAITED, phase_changes
from hack.bench.reaction import over_https
from hack.bench.real_cluster import real_cluster
from hack.bench.recorder import Audit
from hack.cluster import scenario as scenarios
from hack.control_plane.assets import find_assets
from hack.control_plane.control_plane import ControlPlane

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hack.control_plane.assets import Assets
    from upgrade_manager.api.phases import PhaseName

SCENARIO = "three-nodes"
#: Of the scenario's durations: short, but without simultaneous events.
SCALE = 0.3
#: Upgrades, all of which count: on the embedded server, and each on a new control plane.
RUNS, REAL_RUNS = 5, 3
#: Milliseconds.
TARGET = 50


def measure() -> list[Figure]:
    """Upgrade three nodes several times in real time, over HTTPS on the embedded server."""
    recorders = [asyncio.run(over_https(SCENARIO, scale=SCALE)) for _ in range(RUNS)]
    return _figures([phase_changes(one.exchanges, manager=MANAGER) for one in recorders], where="embedded")


def measure_real() -> list[Figure]:
    """Upgrade three nodes several times on a real API server, measured by its audit log. Raises AssetsError."""
    assets = find_assets(os.environ)
    return _figures([_real_run(assets) for _ in range(REAL_RUNS)], where="real server")


def _figures(runs: Sequence[Mapping[PhaseName, float]], *, where: str) -> list[Figure]:
    """Return the median of all and the worst of each phase. Raises KeyError when a run lacks a phase."""
    ends = {phase: [1000 * run[phase] for run in runs] for phase in AWAITED}
    median = statistics.median(value for values in ends.values() for value in values)
    return [
        Figure(name=f"{where}: phase changes, median of all", value=median, unit="ms", target=TARGET),
        *(
            Figure(name=f"{where}: {phase} ready to the next write, worst", value=max(values), unit="ms", target=TARGET)
            for phase, values in ends.items()
        ),
    ]


def _real_run(assets: Assets) -> dict[PhaseName, float]:
    with tempfile.TemporaryDirectory(prefix="upgrade-bench-") as folder:
        audit = Audit(Path(folder))
        with ControlPlane(assets, api_flags=audit.flags) as plane:
            asyncio.run(_upgrade(plane))
        return phase_changes(audit.exchanges(), manager=MANAGER)


async def _upgrade(plane: ControlPlane) -> None:
    async with real_cluster(plane, scenarios.load(SCENARIO), scale=SCALE) as cluster:
        manager = await cluster.start_manager()
        await cluster.create_plan()
        await cluster.succeeded(within=UPGRADE_TIMEOUT)
        await manager.stop()
