from __future__ import annotations

import asyncio

import pytest

from hack.scenario import load
from hack.simulation import Simulation
from hack.virtual_time import run
from tests.support.managers.upgrade import started
from upgrade_manager.api.phases import SUCCEEDED


async def upgraded(seed: int) -> str:
    """Return the end state of an upgrade."""
    async with Simulation("three-nodes", seed=seed) as simulation:
        async with started(simulation) as stage:
            assert await stage.until_ended() == SUCCEEDED
        return await simulation.dump()


@pytest.mark.full
def test_only_the_same_seed_gives_an_identical_run() -> None:
    assert run(upgraded(3)) == run(upgraded(3)) != run(upgraded(4))


async def test_failed_start_leaves_nothing_running() -> None:
    before = len(asyncio.all_tasks())
    broken = load("three-nodes").changed(vms={"machines": [{"name": "Not A Name", "node": "node-0"}]})
    with pytest.raises(BaseExceptionGroup):
        async with Simulation(broken):
            pass
    assert len(asyncio.all_tasks()) == before
