"""What two replicas export of a plan, from its creation to its deletion, across a change of the leader."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from prometheus_client import generate_latest

from hack.simulation import Simulation
from tests.support.polling import eventually
from tests.support.upgrade import UpgradeRun, seconds_of_phases
from upgrade_manager.cli.options import RunOptions

if TYPE_CHECKING:
    from tests.support.manager_process import ManagerProcess

ELECTED = RunOptions(leader_elect=True)


def by_phase(life: ManagerProcess, name: str) -> dict[str, float]:
    life.metrics.refresh()
    samples = (sample for family in life.metrics.registry.collect() for sample in family.samples)
    return {one.labels.get("phase", ""): one.value for one in samples if one.name == f"harvester_upgrade_{name}"}


async def exports_plans(life: ManagerProcess) -> bool:
    return bool(by_phase(life, "phase"))


@pytest.mark.rule(
    "metrics: only the leader exports plans, and a new leader continues the series of the old one",
    "metrics: the seconds of a phase stop when it ends",
    "metrics: a deleted plan has no series",
)
async def test_leader_change_neither_resets_nor_doubles_series() -> None:
    async with Simulation("three-nodes") as simulation, AsyncExitStack() as second_life:
        stage = await UpgradeRun.set_up(simulation)
        async with replace(stage.life(seed="one"), options=ELECTED) as one:
            await stage.create_plan()
            await eventually(lambda: exports_plans(one))
            two = await second_life.enter_async_context(replace(stage.life(seed="two"), options=ELECTED))
            await stage.until_node("PostDraining")
            assert not await exports_plans(two)
            before, progress = by_phase(one, "phase_seconds"), by_phase(one, "progress_ratio")[""]
        await eventually(lambda: exports_plans(two))
        # A manager that stops leads no more.
        assert not await exports_plans(one)
        after = by_phase(two, "phase_seconds")
        running = after.pop("NodeUpgrade")
        assert after == {phase: before[phase] for phase in after}
        assert running > before["NodeUpgrade"]
        assert by_phase(two, "progress_ratio")[""] >= progress
        plan = await stage.succeed()
        assert by_phase(two, "phase_seconds") == seconds_of_phases(plan)
        await stage.delete()
        two.metrics.refresh()
        assert f'"{stage.name}"' not in generate_latest(two.metrics.registry).decode()
