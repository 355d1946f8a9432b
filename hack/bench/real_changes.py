"""How soon each phase begins on a real API server, whose audit log says when it had what."""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from hack.bench.audit import Audit
from hack.bench.changes import SCALE, SCENARIO, figures
from hack.bench.desk import MANAGER, PATIENCE
from hack.bench.outside import outside
from hack.bench.phase_changes import phase_changes
from hack.cluster import scenario as scenarios
from hack.control_plane.assets import find_assets
from hack.control_plane.control_plane import ControlPlane

if TYPE_CHECKING:
    from hack.bench.figure import Figure
    from hack.control_plane.assets import Assets
    from upgrade_manager.api.phases import PhaseName

#: Upgrades, each on a control plane of its own; all of them count.
RUNS = 3


def measure() -> list[Figure]:
    """Upgrade three nodes several times. Raises AssetsError."""
    assets = find_assets(os.environ)
    return figures([_run(assets) for _ in range(RUNS)], where="real server")


def _run(assets: Assets) -> dict[PhaseName, float]:
    with tempfile.TemporaryDirectory(prefix="upgrade-bench-") as folder:
        audit = Audit(Path(folder))
        with ControlPlane(assets, api_flags=audit.flags) as plane:
            asyncio.run(_upgraded(plane))
        return phase_changes(audit.exchanges(), manager=MANAGER)


async def _upgraded(plane: ControlPlane) -> None:
    async with outside(plane, scenarios.load(SCENARIO), scale=SCALE) as place:
        manager = await place.start_manager()
        await place.apply()
        await place.succeeded(within=PATIENCE)
        await manager.stop()
