"""Whole upgrades of plans that are paused: where they hold, and what goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hack.scenario import Scenario
from hack.simulation import Simulation
from tests.support.cluster.simulate import RepairableScenario, fault
from tests.support.managers.begun_while_paused import BegunWhilePaused, holds
from tests.support.managers.upgrade import BY_VERSION, UpgradeRun, condition, node_states, started
from upgrade_manager.api.attribution import signed
from upgrade_manager.api.keys import ANNOTATION_LAST_CHANGED_BY
from upgrade_manager.api.spec import UpgradePlanSpec
from upgrade_manager.cli.options import RunOptions
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object

pytestmark = pytest.mark.full
DEFAULTS = RunOptions()
PAUSED: dict[str, Any] = {**BY_VERSION, "paused": True}
CANARY: dict[str, Any] = {"nodeUpgradeOption": {"pauseAfter": 1}}
#: Virtual seconds of a night.
NIGHT = 9 * 3600
#: Virtual seconds of a pause in which events go, and in which all that waits for an hour happens.
BREAK = 2 * 3600
WHO = "Paused by alice at 00:0"
COMMAND = "To continue: upgrade-manager continue upgrade"


def by(user: str, spec: dict[str, Any]) -> dict[str, Any]:
    """Return the annotation that the mutating webhook sets for a change of the plan to that spec."""
    return {"annotations": {ANNOTATION_LAST_CHANGED_BY: signed(user, UpgradePlanSpec.read(spec), {})}}


async def pause(stage: UpgradeRun, user: str = "alice") -> None:
    await stage.patch(spec={"paused": True}, metadata=by(user, PAUSED))


async def resume(stage: UpgradeRun, user: str = "bob") -> None:
    await stage.patch(spec={"paused": None}, metadata=by(user, BY_VERSION))


@asynccontextmanager
async def upgrade(
    scenario: str | Scenario, spec: dict[str, Any] = BY_VERSION, *, options: RunOptions = DEFAULTS
) -> AsyncIterator[UpgradeRun]:
    """Run an upgrade in which nothing may begin while the plan says that it holds."""
    async with Simulation(scenario) as simulation:
        watch, stage = BegunWhilePaused(simulation), await UpgradeRun.set_up(simulation)
        stage.options = options
        async with stage.life():
            await stage.create_plan(spec, **by("alice", spec))
            yield stage
            await stage.succeed()
        assert watch.found == []
        assert watch.pauses


async def assert_holds(stage: UpgradeRun, where: str, *, seconds: float = BREAK) -> Object:
    """Check that the upgrade stands still there, without a blocker, and say so."""
    plan = await stage.until_plan(holds)
    await asyncio.sleep(seconds)
    later = await stage.plan()
    assert await stage.phase() == objects.status(plan)["currentPhase"]
    assert node_states(later) == node_states(plan)
    status, reason, message = condition(later, "Paused")
    assert (status, reason, message[: len(WHO)]) == ("True", "Paused", WHO)
    assert message.endswith(f". The upgrade holds {where}, and nothing of it runs. {COMMAND}")
    assert condition(later, "Progressing")[:2] == ("True", await stage.phase())
    assert condition(later, "Reconciling")[0] == "True"
    assert condition(later, "Ready")[0] == "Unknown"
    assert condition(later, "Stalled")[0] == ""
    known = objects.status(later)
    assert (known["display"]["state"], known["display"]["message"]) == ("Paused", message)
    assert (known.get("blockers"), known.get("estimatedCompletion"), known["pausedBy"]) == (None, None, "alice")
    return later


async def assert_goes_on(stage: UpgradeRun, *, after: int = BREAK) -> None:
    """Continue the upgrade, and check that nothing of the pause is left."""
    await resume(stage)
    plan = await stage.succeed()
    assert await stage.warnings() == []
    assert condition(plan, "Paused")[0] == ""
    assert "pausedBy" not in objects.status(plan)
    found = {event["reason"]: (event["message"], event["count"]) for event in await stage.events()}
    # The API server keeps an event for an hour.
    assert found["UpgradeContinued"] == (f"Continued after {after // 3600} h 0 min (last change of the plan: bob)", 1)


@pytest.mark.rule(
    "control: spec.paused holds the upgrade before the next phase or node, and what has begun is finished",
    "control: while a plan is paused nothing begins, and nothing is a blocker",
    "control: condition Paused says since when, by whom, where it holds and what runs",
)
@pytest.mark.parametrize(
    ("at", "where"),
    [
        ("", "before phase ISODownload"),
        ("ISODownloading", "before phase RepoCreate"),
        ("RepoCreating", "before phase MetadataPopulate"),
        ("ImagePreloading", "before phase ClusterUpgrade"),
        ("ClusterUpgrading", "before phase NodeUpgrade"),
    ],
)
@pytest.mark.thin
async def test_plan_holds_before_the_next_phase(at: str, where: str) -> None:
    async with upgrade("three-nodes", BY_VERSION if at else PAUSED) as stage:
        if at == "ClusterUpgrading":
            await stage.until_plan(lambda _: "upgrade-cluster-upgrade" in stage.ledger.names("jobs"))
        if at:
            await stage.until_recorded(at)
            await pause(stage)
        seconds = BREAK if at else NIGHT
        await assert_holds(stage, where, seconds=seconds)
        await assert_goes_on(stage, after=seconds)


@pytest.mark.parametrize(
    ("scenario", "node", "state", "where"),
    [
        pytest.param("three-nodes", "", "", "before the first node", id="nothing has begun"),
        pytest.param("three-nodes", "node-0", "PreDraining", "before the drain of node-0", id="VMs leave"),
        pytest.param("three-nodes", "node-0", "PreDrained", "before the drain of node-2", id="Rancher drains"),
        pytest.param("three-nodes", "node-0", "PostDraining", "before the drain of node-2", id="the OS is written"),
        pytest.param("three-nodes", "node-2", "WaitingReboot", "before the drain of node-1", id="the next reboots"),
        pytest.param("three-nodes", "node-1", "PostDraining", "before phase ImageCleanup", id="the last node"),
        pytest.param("one-node", "node-0", "SingleNodeUpgrading", "before phase ImageCleanup", id="the only node runs"),
    ],
)
@pytest.mark.thin
async def test_plan_holds_before_the_next_node(scenario: str, node: str, state: str, where: str) -> None:
    async with upgrade(scenario) as stage:
        await (stage.until_node(state, node=node) if node else stage.until_recorded("NodeUpgrading"))
        await pause(stage)
        if scenario == "one-node":
            # The API server reboots with its node.
            await stage.until("NodeUpgraded")
        await assert_holds(stage, where)
        await assert_goes_on(stage)


async def test_condition_says_what_still_runs() -> None:
    async with upgrade("three-nodes") as stage:
        await stage.until_node("PostDraining", node="node-0")
        await pause(stage)
        plan = await stage.until_plan(lambda plan: condition(plan, "Paused")[0] == "True")
        status, reason, message = condition(plan, "Paused")
        assert (status, reason) == ("True", "Pausing")
        runs = "node-0: post-drain Job harvester-system/upgrade-node-upgrade-post-drain-node-0"
        assert f". The upgrade will hold before the next node. Until then NodeUpgrade runs: {runs}" in message
        assert message.endswith(f" (0 of 3 nodes done). {COMMAND}")
        await stage.until_plan(holds)
        await resume(stage)


@pytest.mark.rule("control: the user who paused is named where the hash of last-changed-by fits, else not recorded")
async def test_user_is_not_named_while_the_webhook_was_down() -> None:
    async with upgrade("three-nodes") as stage:
        await stage.until_recorded("ISODownloading")
        await stage.patch(spec={"paused": True})
        plan = await stage.until_plan(holds)
        assert condition(plan, "Paused")[2].startswith("Paused by not recorded at ")
        # The user who changes the plan later has not paused it.
        await stage.patch(metadata=by("carol", PAUSED))
        await asyncio.sleep(5)
        assert objects.status(await stage.plan())["pausedBy"] == "not recorded"
        events = [event["message"] for event in await stage.events("UpgradePaused")]
        assert events == ["Paused by not recorded"]
        await resume(stage)


@pytest.mark.rule("control: after an hour VMRecoveryOff is True where the running Harvester is v1.9 or later")
@pytest.mark.parametrize(
    ("running", "target", "phase", "expected"),
    [
        pytest.param("v1.9.0-rc1", "v1.9.1", "ISODownloading", "True", id="it runs"),
        pytest.param("v1.8.0", "v1.9.0", "ISODownloading", "", id="it is the target"),
        pytest.param("v1.8.0", "v1.9.0", "NodeUpgrading", "True", id="it runs by now"),
    ],
)
async def test_recovery_of_vms_is_off_after_an_hour(running: str, target: str, phase: str, expected: str) -> None:
    release = {"harvester": target, "min_upgradable_version": ""}
    scenario = RepairableScenario.of(software={"harvester": running}, release=release)
    async with upgrade(scenario, {"version": target, "force": True}) as stage:
        await stage.until_recorded(phase)
        await pause(stage)
        await stage.until_plan(lambda plan: condition(plan, "Paused")[0] == "True")
        await asyncio.sleep(3500)
        assert condition(await stage.plan(), "VMRecoveryOff")[0] == ""
        await asyncio.sleep(200)
        assert condition(await stage.plan(), "VMRecoveryOff")[0] == expected
        await resume(stage)
        plan = await stage.until_plan(lambda plan: condition(plan, "Paused")[0] == "")
        assert condition(plan, "VMRecoveryOff")[0] == ""


@pytest.mark.rule("control: after an hour VMRecoveryOff is True where the running Harvester is v1.9 or later")
async def test_hour_without_recovery_counts_over_all_causes() -> None:
    release = {"harvester": "v1.9.1", "min_upgradable_version": ""}
    scenario = RepairableScenario.of(software={"harvester": "v1.9.0-rc1"}, release=release)
    async with upgrade(scenario, {"version": "v1.9.1", "force": True, **CANARY}) as stage:
        await stage.until_plan(holds)
        await asyncio.sleep(1800)
        await pause(stage, "bob")
        await stage.until_plan(lambda plan: condition(plan, "Paused")[1] == "Paused")
        await asyncio.sleep(1700)
        assert condition(await stage.plan(), "VMRecoveryOff")[0] == ""
        await asyncio.sleep(200)
        assert condition(await stage.plan(), "VMRecoveryOff")[0] == "True"
        await stage.patch(spec={"paused": None, "nodeUpgradeOption": None})
        plan = await stage.until_plan(lambda plan: condition(plan, "Paused")[0] == "")
        assert condition(plan, "VMRecoveryOff")[0] == ""
        assert "pausedSince" not in objects.status(plan)


@pytest.mark.rule("control: pauses within a second are an event each, whatever their causes")
async def test_two_causes_within_a_second_have_their_events() -> None:
    async with upgrade("three-nodes", {**BY_VERSION, **CANARY}) as stage:
        await stage.until_plan(holds)
        await asyncio.sleep(BREAK)
        await pause(stage, "bob")
        second = await stage.until_plan(lambda plan: condition(plan, "Paused")[1] == "Paused")
        await stage.patch(spec={"paused": None})
        third = await stage.until_plan(lambda plan: condition(plan, "Paused")[1] == "PauseAfter")
        times = {objects.condition(plan, "Paused")["lastTransitionTime"] for plan in (second, third)}
        assert len(times) == 1
        await asyncio.sleep(60)
        found = [event["message"].split(" (")[0] for event in await stage.events("UpgradePaused")]
        canary = "Paused by spec.nodeUpgradeOption.pauseAfter"
        assert sorted(found) == ["Paused by not recorded", canary, canary]
        await stage.patch(spec={"nodeUpgradeOption": None})


@pytest.mark.rule("control: condition Paused says since when, by whom, where it holds and what runs")
async def test_pause_by_another_cause_has_its_own_begin_and_user() -> None:
    canary = {**BY_VERSION, **CANARY}
    both = {**canary, "paused": True}
    async with upgrade("three-nodes", canary) as stage:
        await stage.until_plan(holds)
        await asyncio.sleep(BREAK)
        await stage.patch(spec={"paused": True}, metadata=by("bob", both))
        plan = await stage.until_plan(lambda plan: condition(plan, "Paused")[1] == "Paused")
        assert condition(plan, "Paused")[2].startswith("Paused by bob at 02:0")
        assert objects.status(plan)["pausedBy"] == "bob"
        await asyncio.sleep(60)
        await stage.patch(spec={"paused": None}, metadata=by("carol", canary))
        plan = await stage.until_plan(lambda plan: condition(plan, "Paused")[1] == "PauseAfter")
        cause = "Paused by spec.nodeUpgradeOption.pauseAfter (last change of the plan: {})"
        assert condition(plan, "Paused")[2].startswith(f"{cause.format('carol')} at 02:0")
        await asyncio.sleep(60)
        paused = [event["message"] for event in await stage.events("UpgradePaused")]
        assert paused == [cause.format("alice"), "Paused by bob", cause.format("carol")]
        assert await stage.events("UpgradeContinued") == []
        await stage.patch(spec={"nodeUpgradeOption": None})


async def test_next_attempt_waits_for_a_paused_plan() -> None:
    scenario = RepairableScenario.of(**fault("manifests"))
    async with Simulation(scenario) as simulation, started(simulation) as stage:
        await stage.fail()
        scenario.repair()
        before = len(stage.ledger.created)
        await stage.patch(spec={"paused": True, "attempt": 2})
        plan = await stage.until_plan(lambda plan: condition(plan, "Available")[1] == "Waiting")
        waits = "The next attempt waits, because spec.paused is true. To continue: upgrade-manager continue upgrade"
        assert condition(plan, "Available")[2] == waits
        await asyncio.sleep(BREAK)
        assert [path for path, _ in stage.ledger.created[before:] if not path.endswith("/events")] == []
        await stage.patch(spec={"paused": None})
        await stage.until("ClusterUpgrading")
        await stage.succeed()


async def test_pause_in_the_last_phase_has_no_effect() -> None:
    async with Simulation("three-nodes") as simulation, started(simulation) as stage:
        await stage.until_recorded("CleaningUp")
        await stage.patch(spec={"paused": True})
        assert condition(await stage.succeed(), "Paused")[0] == ""


@pytest.mark.rule("control: a plan in its last phase does not hold")
async def test_last_phase_does_not_hold() -> None:
    async with Simulation("three-nodes") as simulation, started(simulation) as stage:
        await stage.until("CleaningUp")
        await pause(stage)
        plan = await stage.succeed()
        assert objects.is_true(plan, "spec", "paused")
        assert condition(plan, "Paused")[0] == ""
        assert [event for event in await stage.events() if event["reason"] == "UpgradePaused"] == []
