"""Cluster API serves Machines in another version."""

from __future__ import annotations

import pytest

from hack.simulation import Simulation
from tests.support.cluster.machine_versions import NewMachines
from tests.support.managers.upgrade import Ledger, UpgradeRun


@pytest.mark.rule("nodes: Machines are read in the version that the API server serves")
async def test_upgrade_succeeds_with_machines_v1beta2() -> None:
    async with Simulation("three-nodes") as simulation:
        stage = await UpgradeRun.set_up(simulation)
        stage.ledger = Ledger(NewMachines(stage.ledger))
        async with stage.life():
            await stage.create_plan()
            await stage.succeed()
        assert await stage.warnings() == []
