"""What a manager asks of the API server when there is nothing to do."""

from __future__ import annotations

import asyncio

from hack import virtual_time
from hack.bench.desk import MANAGER
from hack.bench.figure import Figure
from hack.bench.in_process import upgraded
from hack.cluster import scenario as scenarios

#: Virtual minutes: first until the upgrade's echo has died away, then to be measured.
SETTLE, MEASURE = 10, 60


def measure() -> list[Figure]:
    """Finish a plan, and look on for an hour."""
    return virtual_time.run(_idle())


async def _idle() -> list[Figure]:
    async with upgraded(scenarios.load("three-nodes")) as upgrade:
        await asyncio.sleep(SETTLE * 60)
        upgrade.recorder.exchanges.clear()
        await asyncio.sleep(MEASURE * 60)
        asked = upgrade.recorder.of(MANAGER)
    writes = sum(exchange.writes_status for exchange in asked)
    return [
        Figure(name="idle with a finished plan: writes of status", value=writes, unit="", aim=0),
        Figure(name="idle with a finished plan: requests", value=len(asked) / MEASURE, unit="/min", aim=10),
    ]
