"""The metrics of a plan on two replicas, from its creation to its deletion, across a change of the leader."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import replace

import pytest
from prometheus_client import generate_latest

from hack.simulation import Simulation
from tests.support.managers.manager_process import ManagerProcess
from tests.support.managers.upgrade import UpgradeRun, seconds_of_phases
from tests.support.programs.polling import eventually
from upgrade_manager.api.phases import PHASES
from upgrade_manager.cli.options import RunOptions

ELECTED = RunOptions(leader_elect=True)


def by_phase(life: ManagerProcess, name: str, **labels: str) -> dict[str, float]:
    life.metrics.refresh()
    samples = (sample for family in life.metrics.registry.collect() for sample in family.samples)
    found = [one for one in samples if one.name == f"harvester_upgrade_{name}" and labels.items() <= one.labels.items()]
    return {one.labels.get("phase", ""): one.value for one in found}


async def exports_plans(life: ManagerProcess) -> bool:
    return bool(by_phase(life, "phase"))


@pytest.mark.full
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


async def counted(*, lose_at: int) -> tuple[dict[str, float], list[str]]:
    """Return how often an upgrade counted each phase, and its writes, of which one gets no response."""
    async with Simulation("one-node", scale=0) as simulation:
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life(lose_at=lose_at) as life:
            await stage.create_plan()
            await stage.succeed()
            return by_phase(life, "phase_duration_seconds_count", outcome="completed"), life.wire.writes


@pytest.mark.full
@pytest.mark.rule("metrics: a phase is counted once, also if the response to its write is lost")
async def test_phase_is_counted_although_a_response_is_lost() -> None:
    counts, writes = await counted(lose_at=0)
    assert counts == dict.fromkeys(PHASES, 1)
    third = [number for number, write in enumerate(writes, 1) if write.endswith("/status")][2]
    assert (await counted(lose_at=third))[0] == counts
