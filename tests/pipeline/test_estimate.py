"""The estimated end of an upgrade, compared with its end in virtual time."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest

from hack import scenario as scenarios
from hack.simulation import Simulation
from hack.virtual_time import virtual_now
from tests.support.managers.upgrade import BY_VERSION, UpgradeRun, node_states, started
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object

pytestmark = pytest.mark.full

#: Seconds of the simulated actors, so that a node takes minutes.
SCALE = 60.0
THREE = scenarios.load("three-nodes")
SEVEN = THREE.changed(nodes={"count": 7, "management": 3})


def estimate(plan: Object) -> str:
    found: str = objects.status(plan).get("estimatedCompletion") or ""
    return found


async def watched(stage: UpgradeRun) -> tuple[list[tuple[datetime, str, int]], datetime]:
    """Return each new estimate with its time and the number of nodes done, and the end of the upgrade."""
    seen: list[tuple[datetime, str, int]] = [(virtual_now(), "", 0)]
    while await stage.phase() not in {"Succeeded", "Failed"}:
        plan = await stage.plan()
        done = sum(state == "PostDrained" for state in node_states(plan).values())
        if estimate(plan) != seen[-1][1]:
            seen.append((virtual_now(), estimate(plan), done))
        await asyncio.sleep(1)
    return seen[1:], virtual_now()


async def run(scenario: Any, seed: int) -> tuple[list[tuple[datetime, str, int]], datetime, Object]:
    async with Simulation(scenario, seed=seed, scale=SCALE) as simulation, started(simulation) as stage:
        seen, ended = await watched(stage)
        return seen, ended, await stage.plan()


@pytest.mark.rule("api: estimatedCompletion is within a factor of two of the end of the upgrade")
@pytest.mark.parametrize("scenario", [pytest.param(THREE, id="three nodes"), pytest.param(SEVEN, id="seven nodes")])
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.thin
async def test_estimate_is_right_within_a_factor_of_two(scenario: Any, seed: int) -> None:
    seen, ended, plan = await run(scenario, seed)
    estimates = [(time, datetime.fromisoformat(text), done) for time, text, done in seen if text]
    # One for each node that finishes, but for the first and the last one.
    assert [done for _, _, done in estimates] == list(range(2, len(scenario.nodes.names)))
    for time, predicted, _ in estimates:
        assert 0.5 <= (predicted - time) / (ended - time) <= 2
    assert estimate(plan) == ""


async def test_estimate_that_has_passed_is_removed() -> None:
    async with Simulation(THREE, scale=SCALE) as simulation:
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life() as life:
            await stage.create_plan(BY_VERSION)
            plan = await stage.until_plan(lambda plan: estimate(plan) != "", seconds=3600)
            await life.kill()
        left = datetime.fromisoformat(estimate(plan)) - virtual_now()
        await asyncio.sleep((left + timedelta(seconds=2)).total_seconds())
        async with stage.life(seed="successor"):
            await stage.until_plan(lambda found: estimate(found) != estimate(plan), seconds=60)
