from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from hack.simulation import Simulation
from tests.support.upgrade import BY_VERSION, UpgradeRun, phases_of
from upgrade_manager.api.phases import PHASE_VALUES, SUCCEEDED
from upgrade_manager.cli.options import RunOptions
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import LEASES, UPGRADE_PLANS

if TYPE_CHECKING:
    from tests.support.manager_process import ManagerProcess
    from tests.support.simulate import Simulate
    from upgrade_manager.kube.objects import Object

ELECTED = RunOptions(leader_elect=True)
#: Virtual seconds until a standby writes after its leader has stopped or was killed.
CLEAN, KILLED = 5.0, 20.0
POLL_INTERVAL = 0.1


def candidate(stage: UpgradeRun, seed: str) -> ManagerProcess:
    """Return one of several replicas."""
    return replace(stage.life(seed=seed), options=ELECTED)


def writes_of(life: ManagerProcess) -> list[str]:
    """Return the manager's writes, except those of leases."""
    return [write for write in life.wire.writes if "/leases" not in write]


async def elected(simulation: Simulation) -> None:
    """Wait until a manager leads."""
    async with asyncio.timeout(60):
        while not any(objects.spec(lease).get("holderIdentity") for lease in await leases(simulation)):  # noqa: ASYNC110  # of another process
            await asyncio.sleep(POLL_INTERVAL)


async def leases(simulation: Simulation) -> list[Object]:
    """Return the managers' leases."""
    return (await simulation.client().list(LEASES, namespace="harvester-system")).items


async def first_write(life: ManagerProcess) -> float:
    """Return the seconds until the manager's first write."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with asyncio.timeout(600):
        while not writes_of(life):  # noqa: ASYNC110  # of another process
            await asyncio.sleep(POLL_INTERVAL)
    return loop.time() - began


@pytest.mark.rule("pipeline: only the reconciler writes a plan's status")
@pytest.mark.servers
async def test_only_the_leader_writes(simulate: Simulate) -> None:
    async with simulate() as simulation:
        stage = await UpgradeRun.set_up(simulation)
        async with candidate(stage, "one") as one, candidate(stage, "two") as two:
            await elected(simulation)
            await stage.create_plan(BY_VERSION)
            assert await stage.until_ended() == SUCCEEDED
            acted = [life for life in (one, two) if writes_of(life)]
        assert len(acted) == 1
        # Both may have tried to create the lease.
        assert [conflict for conflict in stage.ledger.conflicts if "/leases" not in conflict] == []


@pytest.mark.servers
@pytest.mark.parametrize(
    ("kill", "within"),
    [pytest.param(False, CLEAN, id="stopped"), pytest.param(True, KILLED, id="was killed")],
)
async def test_standby_takes_over_from_a_leader_that(
    simulate: Simulate,
    kill: bool,  # noqa: FBT001  # a table
    within: float,
) -> None:
    async with simulate() as simulation:
        stage = await UpgradeRun.set_up(simulation)
        async with candidate(stage, "one") as leader:
            await elected(simulation)
            async with candidate(stage, "two") as standby:
                await stage.create_plan(BY_VERSION)
                await stage.until("NodeUpgrading")
                assert writes_of(standby) == []
                if kill:
                    await leader.kill()
                else:
                    await leader.__aexit__(None, None, None)
                assert await first_write(standby) <= within
                assert await stage.until_ended() == SUCCEEDED
        plan = await stage.plan()
    assert phases_of(plan) == [*PHASE_VALUES, SUCCEEDED]
    assert objects.status(plan)["provisionGeneration"] == 4


async def test_change_by_a_user_triggers_a_reconcile() -> None:
    async with Simulation(actors=False) as simulation:
        client = simulation.client()
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life():
            await stage.create_plan({"version": "v9.9.9"})
            # Retried every ten seconds by now, for the Version does not exist.
            await asyncio.sleep(120)
            counts = simulation.middleware.counts
            counts.clear()
            await client.patch(UPGRADE_PLANS, stage.name, MergePatch({"metadata": {"annotations": {"a": "b"}}}))
            await asyncio.sleep(POLL_INTERVAL)
            assert counts.total(verb="get", resource="versions.harvesterhci.io") == 1


async def test_status_change_triggers_no_reconcile() -> None:
    async with Simulation(actors=False) as simulation:
        client = simulation.client()
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life():
            await stage.create_plan({"version": "v9.9.9"})
            await asyncio.sleep(120)
            counts = simulation.middleware.counts
            counts.clear()
            for step in range(5):
                status = MergePatch({"status": {"previousVersion": f"v{step}"}})
                await client.patch(UPGRADE_PLANS, stage.name, status, subresource="status")
                await asyncio.sleep(POLL_INTERVAL)
            assert counts.total(verb="get", resource="versions.harvesterhci.io") <= 1
