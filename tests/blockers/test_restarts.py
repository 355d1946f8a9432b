"""A manager that restarts while an upgrade is held up: the blocker keeps its time, and its event is not repeated."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from hack.simulation import Simulation
from tests.support.managers.manager_restarts import Interruption, restarted
from tests.support.managers.stall_matrix import PlanObserver, cell_of, held_up
from tests.support.managers.sweep import Sweep, shares
from tests.support.managers.upgrade import UpgradeRun

if TYPE_CHECKING:
    from hack.apiserver.history import Entry

pytestmark = pytest.mark.full

SHARES = 4
#: Writes of a manager until its first blocker is cleared, at least.
WRITES = 48


@pytest.fixture
def sweep(request: pytest.FixtureRequest) -> Sweep:
    return Sweep(tier=request.config.getoption("tier"))


async def stalled(die_at: int, *, after: bool) -> tuple[set[str], list[tuple[str, int]], bool]:
    """Return every `since` of the blocker, the reasons and counts of its events, and whether the manager died."""
    sinces: set[str] = set()
    async with Simulation() as simulation:
        observer = PlanObserver(simulation.server.storage)

        def note(collection: str, _: Entry) -> None:
            if collection == "upgradeplans.management.harvesterhci.io":
                sinces.update(f"{one.name} {one.since}" for one in observer.blockers)

        simulation.server.storage.observers.append(note)
        stage = await UpgradeRun.set_up(simulation)
        async with restarted(stage, [Interruption(die_at=die_at, after=after, gap=3)]) as restarts:
            await stage.create_plan()
            await observer.until(lambda: observer.is_at("ClusterUpgrading"), seconds=600)
            simulation.freezer.freeze("Scheduler")
            await observer.until(lambda: bool(observer.blockers), seconds=600)
            await asyncio.sleep(30)
            simulation.freezer.thaw("Scheduler")
            await stage.succeed()
            died = len(restarts.lives) > 1
        events = await stage.events()
    found = [(event["reason"], event.get("count") or 1) for event in events]
    return sinces, [one for one in found if one[0] in {"PodPending", "BlockerCleared"}], died


@pytest.mark.rule("blockers: since survives a restart, and the event is not repeated")
@pytest.mark.parametrize("share", shares(SHARES))
async def test_restart_keeps_since_and_repeats_no_event(share: int, sweep: Sweep) -> None:
    for number in sweep.points(1, WRITES, share=share, shares=SHARES, stride=18):
        for after in (False, True):
            sinces, events, died = await stalled(number, after=after)
            where = f"died {'after' if after else 'before'} write {number}"
            assert died, where
            # The scheduler may hang before the Pods of the repository run.
            names = {since.partition(" ")[0] for since in sinces}
            assert len(sinces) == len(names) > 0, where
            assert all(count == 1 for _, count in events), where
            counts = Counter(reason for reason, _ in events)
            assert counts["PodPending"] == len(names), where
            # The end of a blocker is not reported again: it is lost if the manager dies before it sends the event.
            assert counts["BlockerCleared"] <= len(names), where


@pytest.mark.rule("blockers: a Rancher that does nothing is named with its Deployment or its conditions")
async def test_drain_is_given_its_time_again_after_a_restart() -> None:
    cell = cell_of("PodDisruptionBudget without disruptions")
    async with Simulation() as simulation:
        observer = PlanObserver(simulation.server.storage)
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life(seed="life 0"):
            await stage.create_plan()
            await observer.until(lambda: observer.is_at(cell.moment), seconds=3600)
            async with held_up(cell, simulation, observer):
                await observer.until(lambda: bool(observer.blockers), seconds=3600)
                await asyncio.sleep(1200)
            await observer.until(lambda: not observer.blockers, seconds=60)
        simulation.freezer.freeze("Drainer")
        async with stage.life(seed="life 1"):
            await asyncio.sleep(300)
            simulation.freezer.thaw("Drainer")
            await stage.succeed()
        assert {blocker.reason for blocker in observer.take()} == {cell.reason}
