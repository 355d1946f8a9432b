"""Each process reports once what a plan has recorded, and again where a write may lack its events."""

from __future__ import annotations

import asyncio

import pytest

from hack.simulation import Simulation
from hack.virtual_time import virtual_now
from tests.support.managers.upgrade import UpgradeRun, phases_of, started
from upgrade_manager.api.timestamps import format_time
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import UPGRADE_PLANS
from upgrade_manager.pipeline.events import PlanEvents

#: Virtual seconds in which a plan that cannot start is reconciled several times.
WHILE = 60.0


@pytest.fixture
def replayed(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Return the recorded phases at each replay."""
    found: list[list[str]] = []
    replay = PlanEvents.replay

    def recording(self: PlanEvents, plan: Object) -> None:
        found.append(phases_of(plan))
        replay(self, plan)

    monkeypatch.setattr(PlanEvents, "replay", recording)
    return found


async def test_healthy_upgrade_is_replayed_once_at_its_start(replayed: list[list[str]]) -> None:
    async with Simulation("one-node", scale=0) as simulation, started(simulation) as stage:
        await stage.succeed()
    assert replayed == [[]]


@pytest.mark.full
async def test_write_without_a_response_is_replayed(replayed: list[list[str]]) -> None:
    async with Simulation("one-node", scale=0) as simulation:
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life() as life:
            await stage.create_plan()
            await stage.succeed()
        first = next(number for number, write in enumerate(life.wire.writes, 1) if write.endswith("/status"))
    replayed.clear()
    async with Simulation("one-node", scale=0) as simulation:
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life(lose_at=first):
            await stage.create_plan()
            await stage.succeed()
    assert replayed == [[], ["Initializing"]]


@pytest.mark.rule("pipeline: each phase event exists exactly once, after any crash")
async def test_late_write_of_an_earlier_leader_is_reported() -> None:
    async with Simulation(actors=False) as simulation, started(simulation, {"version": "v9.9.9"}) as stage:
        await asyncio.sleep(WHILE)
        entries = objects.status(await stage.plan())["phaseTransitionTimestamps"]
        late = {"phase": "Initialized", "phaseTransitionTimestamp": format_time(virtual_now())}
        patch = MergePatch({"status": {"phaseTransitionTimestamps": [*entries, late]}})
        await stage.client.patch(UPGRADE_PLANS, stage.name, patch, subresource="status")
        await asyncio.sleep(WHILE)
        events = await stage.events("PhaseCompleted")
    assert [event["message"] for event in events] == ["Completed phase Initialize"]
