"""Attempts in the queue: they wait for holders of the cluster as plans do, and hold up no other plan while paused."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from hack.simulation import Simulation
from tests.pipeline.test_plan_queue import DAY, HOLDINGS, RANCHER, queued
from tests.support.cluster.simulate import SECOND, RepairableScenario, fault
from tests.support.managers.upgrade import UpgradeRun, condition, phases_of
from upgrade_manager.kube import objects


async def test_next_attempt_waits_without_conditions_of_a_failure() -> None:
    scenario = RepairableScenario.of("three-nodes", **fault("pre-drain", SECOND))
    async with Simulation(scenario, scale=0) as simulation:
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life():
            await stage.create_plan()
            await stage.fail()
            holding = HOLDINGS["a built-in upgrade"]
            await holding.begin(simulation)
            scenario.repair()
            await stage.patch(spec={"attempt": 2})
            plan = await queued(stage, holding.message)
            status = objects.status(plan)
            assert (status["currentPhase"], status.get("attempt", 1)) == ("Failed", 1)
            assert {"Progressing", "Stalled", "Degraded"}.isdisjoint({one["type"] for one in status["conditions"]})
            assert condition(plan, "Reconciling")[:2] == ("True", "Queued")
            assert condition(plan, "Ready")[:2] == ("Unknown", "Queued")
            await holding.finish(simulation)
            await stage.until("NodeUpgrading")
            plan = await stage.succeed()
            assert objects.status(plan)["attempt"] == 2


@pytest.mark.parametrize("spec", [{}, {"paused": True}], ids=["alone", "with a paused attempt before it"])
async def test_paused_attempt_holds_up_no_other_plan(spec: dict[str, Any]) -> None:
    scenario = RepairableScenario.of("three-nodes", **fault("manifests"))
    async with Simulation(scenario, scale=0) as simulation:
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life():
            await stage.create_plan()
            await stage.fail()
            scenario.repair()
            if spec:
                await stage.patch(spec={"attempt": 2, **spec})
                paused = await stage.until_plan(lambda plan: "spec.paused" in condition(plan, "Available")[2])
                assert "queuedSince" not in objects.status(paused)
            later = replace(stage, name="later")
            await later.create_plan()
            await later.succeed()


async def test_attempt_mends_what_the_failure_left_half_way() -> None:
    scenario = RepairableScenario.of("three-nodes", **fault("manifests"))
    async with Simulation(scenario, scale=0) as simulation:
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life():
            await stage.create_plan()
            await stage.fail()
            scenario.repair()
            await RANCHER.begin(simulation)
            await HOLDINGS["an addon that is updated"].begin(simulation)
            await stage.patch(spec={"attempt": 2})
            plan = await stage.until_plan(lambda plan: "ClusterUpgraded" in phases_of(plan))
            assert objects.status(plan)["attempt"] == 2


async def test_failed_attempt_is_refused_after_a_day() -> None:
    scenario = RepairableScenario.of("three-nodes", **fault("pre-drain", SECOND))
    async with Simulation(scenario, scale=0) as simulation:
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life():
            await stage.create_plan()
            before = objects.status(await stage.fail())["nodeUpgradeStatuses"]
            holding = HOLDINGS["a built-in upgrade"]
            await holding.begin(simulation)
            await stage.patch(spec={"attempt": 2})
            await queued(stage, holding.message)
            await asyncio.sleep(DAY + 60)
            plan = await stage.plan()
            status = objects.status(plan)
            assert (status["attempt"], status["currentPhase"]) == (2, "Failed")
            assert condition(plan, "Progressing")[:2] == ("False", "Refused")
            assert status["nodeUpgradeStatuses"] == before
            scenario.repair()
            await holding.finish(simulation)
            await stage.patch(spec={"attempt": 3})
            await stage.until("NodeUpgrading")
            await stage.succeed()
