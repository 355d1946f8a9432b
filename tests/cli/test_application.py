"""The wiring of the manager: what its start waits for."""

from __future__ import annotations

import asyncio

from hack.faults.rules import Match, Refuse, Rule
from hack.simulation import Simulation
from tests.support.upgrade import UpgradeRun


async def test_cache_that_syncs_late_does_not_end_the_manager() -> None:
    async with Simulation() as simulation:
        refusal = Refuse(status=503, reason="ServiceUnavailable")
        rule = Rule(match=Match(verbs=("list", "watch"), resource="upgradeplans.*"), action=refusal)
        simulation.middleware.add(rule)
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life():
            await stage.create_plan()
            await asyncio.sleep(600)
            assert await stage.phase() == ""
            simulation.middleware.remove(rule)
            await stage.succeed()
