"""Blockers that are over stay in the status, also after the end of the plan."""

from __future__ import annotations

import asyncio

import pytest

from hack.demo.commands import scale
from hack.scenario import Fault, load
from hack.simulation import Simulation
from tests.support.managers.upgrade import started
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import DEPLOYMENTS

SUC = "system-upgrade-controller"
#: Seconds for which the controller is scaled down.
DOWN = 300


@pytest.mark.rule("blockers: those that are over stay in the status, with begin and end")
@pytest.mark.parametrize("faults", [(), (Fault(work="manifests"),)], ids=["succeeded", "failed"])
async def test_blocker_that_is_over_stays_in_the_status(faults: tuple[Fault, ...]) -> None:
    scenario = load("three-nodes").changed(operators=True, faults=faults)
    async with Simulation(scenario) as simulation, started(simulation) as stage:
        await scale(DEPLOYMENTS, SUC, "cattle-system", 0).run(stage.client)
        await asyncio.sleep(DOWN)
        (blocker,) = objects.status(await stage.plan())["blockers"]
        await scale(DEPLOYMENTS, SUC, "cattle-system", 1).run(stage.client)
        status = objects.status(await (stage.fail() if faults else stage.succeed()))
        assert "blockers" not in status
        past = status["pastBlockers"][0]
        assert {key: past[key] for key in ("reason", "kind", "name", "since")} == {
            key: blocker[key] for key in ("reason", "kind", "name", "since")
        }
        assert past["until"].startswith("2026-01-01T00:05:")
