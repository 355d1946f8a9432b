"""Pauses that follow each other: events within a second, and what is left when the manager is killed between two."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Any

import pytest

from hack.simulation import Simulation
from tests.pipeline.test_plan_pauses import CANARY, by, pause, resume, upgrade
from tests.support.cluster.simulate import RepairableScenario
from tests.support.managers.begun_while_paused import holds
from tests.support.managers.upgrade import BY_VERSION, UpgradeRun, condition
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import UPGRADE_PLANS

pytestmark = pytest.mark.full
HOURS = 2 * 3600
#: The running Harvester recovers no VM while a plan is unfinished.
RECOVERY_OFF = RepairableScenario.of(
    software={"harvester": "v1.9.0-rc1"}, release={"harvester": "v1.9.1", "min_upgradable_version": ""}
)
SPEC: dict[str, Any] = {"version": "v1.9.1", "force": True}


async def _die_between_causes(stage: UpgradeRun) -> None:
    """Kill managers, each after one write more, until one has removed the pause of the old cause."""
    for number in count(1):
        async with stage.life(die_at=number, after=True, seed=f"life {number}") as life:
            await life.wire.died.wait()
        if condition(await stage.plan(), "Paused")[0] == "":
            return


@pytest.mark.rule("control: a pause whose cause changes leaves nothing, also when the manager is killed in between")
@pytest.mark.parametrize("left", [None, {"pauseAfter": 2}], ids=["no pause is left", "a later pause is left"])
@pytest.mark.thin
async def test_manager_is_killed_between_two_causes(left: dict[str, Any] | None) -> None:
    async with Simulation(RECOVERY_OFF) as simulation:
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life():
            await stage.create_plan({**SPEC, **CANARY})
            await stage.until_plan(holds)
            await pause(stage)
            await asyncio.sleep(HOURS)
        await resume(stage)
        await _die_between_causes(stage)
        between = await stage.plan()
        assert condition(between, "VMRecoveryOff")[0] == "True"
        assert "pausedSince" in objects.status(between)
        option: dict[str, Any] = {"nodeUpgradeOption": left}
        await stage.patch(spec=option, metadata=by("bob", {**SPEC, **option} if left else SPEC))
        async with stage.life():
            await stage.until_node("PreDraining", node="node-2")
            plan = await stage.plan()
            assert condition(plan, "VMRecoveryOff")[0] == ""
            assert "pausedSince" not in objects.status(plan)
            continued = [event["message"] for event in await stage.events("UpgradeContinued")]
            assert continued == ["Continued after 2 h 0 min (last change of the plan: bob)"]
            await stage.patch(spec={"nodeUpgradeOption": None})
            await stage.succeed()
            assert len(await stage.events("UpgradeContinued")) == 1


@pytest.mark.rule("control: after an hour VMRecoveryOff is True where the running Harvester is v1.9 or later")
async def test_hour_counts_from_the_pause_of_an_earlier_version() -> None:
    async with upgrade("three-nodes", {**BY_VERSION, "paused": True}) as stage:
        began = objects.condition(await stage.until_plan(holds), "Paused")["lastTransitionTime"]
        await asyncio.sleep(HOURS)
        without = MergePatch({"status": {"pausedSince": None}})
        await stage.client.patch(UPGRADE_PLANS, stage.name, without, subresource="status")
        # The manager sees no status that it has not written.
        await stage.patch(metadata={"annotations": {"a": "b"}})
        plan = await stage.until_plan(lambda plan: "pausedSince" in objects.status(plan))
        assert objects.status(plan)["pausedSince"] == began
        await resume(stage)


@pytest.mark.rule("control: pauses within a second are an event each, whatever their causes")
async def test_two_pauses_of_one_cause_within_a_second_have_events() -> None:
    async with upgrade("three-nodes") as stage:
        await stage.until_recorded("ISODownloading")
        times = []
        for paused_by, continued_by in (("alice", "bob"), ("carol", "dave"), ("erin", "frank")):
            await pause(stage, paused_by)
            plan = await stage.until_plan(holds)
            times.append(objects.condition(plan, "Paused")["lastTransitionTime"])
            # The first one lasts until nothing runs, and the others are of one second.
            await asyncio.sleep(60 if paused_by == "alice" else 0)
            await resume(stage, continued_by)
            await stage.until_plan(lambda plan: condition(plan, "Paused")[0] == "")
        assert len({*times[1:]}) == 1
        assert objects.status(plan)["pauses"] == 3
        await asyncio.sleep(60)
        paused = [event["message"] for event in await stage.events("UpgradePaused")]
        assert paused == ["Paused by alice", "Paused by carol", "Paused by erin"]
        continued = [
            event["message"].partition(" of the plan: ")[2] for event in await stage.events("UpgradeContinued")
        ]
        assert continued == ["bob)", "dave)", "frank)"]
