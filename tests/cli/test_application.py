"""The wiring of the manager: what its start waits for."""

from __future__ import annotations

import asyncio
from random import Random

import pytest
from prometheus_client import CollectorRegistry

from hack.bench.in_process import LoopClock
from hack.bench.recorder import Recorder
from hack.faults.rules import Match, Refuse, Rule
from hack.simulation import Simulation
from tests.support.managers.upgrade import UpgradeRun, started
from upgrade_manager.cli.application import build_manager
from upgrade_manager.cli.environment import Environment
from upgrade_manager.cli.options import RunOptions
from upgrade_manager.preflight.kubelets import DirectKubelets
from upgrade_manager.runtime.metrics import Metrics


@pytest.mark.full
async def test_cache_that_syncs_late_does_not_end_the_manager() -> None:
    async with Simulation() as simulation:
        refusal = Refuse(status=503, reason="ServiceUnavailable")
        rule = Rule(match=Match(verbs=("list", "watch"), resource="upgradeplans.*"), action=refusal)
        simulation.middleware.add(rule)
        async with started(simulation) as stage:
            await asyncio.sleep(600)
            assert await stage.phase() == ""
            simulation.middleware.remove(rule)
            await asyncio.sleep(60)
            assert await stage.phase() != ""


async def test_lease_has_a_transport_to_itself() -> None:
    async with Simulation() as simulation:
        await UpgradeRun.set_up(simulation)
        ordinary, lease = (Recorder(simulation.backend.transport) for _ in range(2))
        environment = Environment(
            transport=ordinary,
            lease=lease,
            kubelets=DirectKubelets(simulation.kubelets),
            repository=simulation.repository,
            certificates=simulation.certificates,
            clock=LoopClock(simulation),
            random=Random(1),
        )
        manager = build_manager(environment, RunOptions(leader_elect=True), Metrics(CollectorRegistry()))
        async with asyncio.TaskGroup() as group:
            group.create_task(manager.run())
            await asyncio.sleep(30)
            manager.stop()
    paths, others = ([exchange.request.path for exchange in one.exchanges] for one in (lease, ordinary))
    assert len(paths) > 10
    assert all("/leases" in path for path in paths)
    assert others
    assert not any("/leases" in path for path in others)
