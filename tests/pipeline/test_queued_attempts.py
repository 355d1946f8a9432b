"""Attempts in the queue: they wait for holders of the cluster as plans do, and hold up no other plan while paused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from hack.apiserver.history import Entry
from hack.simulation import Simulation
from tests.pipeline.test_plan_pauses import COMMAND, WHO, by
from tests.pipeline.test_plan_queue import DAY, WHILE, queued
from tests.support.cluster.holdings import HOLDINGS, RANCHER
from tests.support.cluster.simulate import SECOND, RepairableScenario, fault
from tests.support.managers.histories import history_of
from tests.support.managers.upgrade import BY_VERSION, UpgradeRun, condition, phases_of, started
from upgrade_manager.api.attempts import is_requested
from upgrade_manager.api.history import rows_of
from upgrade_manager.display.history import is_complete
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object
from upgrade_manager.pipeline.history import SHORTEST

pytestmark = pytest.mark.full


@asynccontextmanager
async def failed(faults: Mapping[str, Any]) -> AsyncIterator[tuple[UpgradeRun, RepairableScenario]]:
    """Provide a plan that has failed."""
    scenario = RepairableScenario.of("three-nodes", **faults)
    async with Simulation(scenario, scale=0) as simulation:
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life():
            await stage.create_plan()
            await stage.fail()
            yield stage, scenario


async def test_next_attempt_waits_without_conditions_of_a_failure() -> None:
    async with failed(fault("pre-drain", SECOND)) as (stage, scenario):
        holding = HOLDINGS["a built-in upgrade"]
        await holding.begin(stage.simulation)
        scenario.repair()
        await stage.patch(spec={"attempt": 2})
        plan = await queued(stage, holding.message)
        status = objects.status(plan)
        assert (status["currentPhase"], status.get("attempt", 1)) == ("Failed", 1)
        assert {"Progressing", "Stalled", "Degraded"}.isdisjoint({one["type"] for one in status["conditions"]})
        assert condition(plan, "Reconciling")[:2] == ("True", "Queued")
        assert condition(plan, "Ready")[:2] == ("Unknown", "Queued")
        await holding.finish(stage.simulation)
        await stage.until("NodeUpgrading")
        plan = await stage.succeed()
        assert objects.status(plan)["attempt"] == 2


@pytest.mark.rule("control: an attempt that is requested during the clean-up is in progress from the first write")
async def test_attempt_waits_for_the_end_of_the_clean_up() -> None:
    scenario = RepairableScenario.of(**fault("pre-drain", SECOND))
    async with Simulation(scenario) as simulation, started(simulation) as stage:
        written: list[Object] = []
        await stage.until_node("PostDrained")
        allow = stage.refuse("patch", "addons.*")
        await stage.until_ended()
        simulation.server.storage.observers.append(partial(_observed, written))
        await stage.patch(spec={"attempt": 2})
        await asyncio.sleep(WHILE)
        plan = await stage.plan()
        assert condition(plan, "Available")[1:] == ("CleaningUp", "The next attempt waits for the end of the clean-up")
        assert objects.status(plan)["display"]["state"] == "Queued"
        seen = list(written)
        # The time of the clean-up is none of the queue.
        await asyncio.sleep(DAY)
        holding = HOLDINGS["a built-in upgrade"]
        await holding.begin(simulation)
        scenario.repair()
        allow()
        await queued(stage, holding.message)
        await holding.finish(simulation)
        await stage.until_plan(lambda plan: objects.status(plan).get("attempt") == 2)
        await stage.succeed()
    assert seen
    for one in seen:
        assert condition(one, "Reconciling")[0] == "True"
        assert {"Progressing", "Stalled", "Degraded"}.isdisjoint({each["type"] for each in one["status"]["conditions"]})


def _observed(written: list[Object], collection: str, entry: Entry) -> None:
    """Keep what readers see of the failed plan at the generation that requests the attempt."""
    plan = entry.stored.object
    is_seen = objects.status(plan).get("observedGeneration") == objects.metadata(plan).get("generation")
    if collection.startswith("upgradeplans.") and is_requested(plan) and is_seen:
        written.append(plan)


@pytest.mark.parametrize("spec", [{}, {"paused": True}], ids=["alone", "with a paused attempt before it"])
@pytest.mark.thin
async def test_paused_attempt_holds_up_no_other_plan(spec: dict[str, Any]) -> None:
    async with failed(fault("manifests")) as (stage, scenario):
        scenario.repair()
        if spec:
            await stage.patch(spec={"attempt": 2, **spec})
            paused = await stage.until_plan(lambda plan: "spec.paused" in condition(plan, "Available")[2])
            assert "queuedSince" not in objects.status(paused)
        later = replace(stage, name="later")
        await later.create_plan()
        await later.succeed()


@pytest.mark.rule(
    "control: an attempt of a paused plan waits, with condition Paused, until its user continues the plan"
)
async def test_paused_attempt_says_who_has_paused_it() -> None:
    async with failed(fault("pre-drain", SECOND)) as (stage, scenario):
        scenario.repair()
        # A canary holds nodes, not an attempt.
        held = {"attempt": 2, "paused": True, "nodeUpgradeOption": {"pauseAfter": 1}}
        await stage.patch(spec=held, metadata=by("alice", {**BY_VERSION, **held}))
        plan = await stage.until_plan(lambda plan: bool(condition(plan, "Paused")[0]))
        status, reason, message = condition(plan, "Paused")
        assert (status, reason, message[: len(WHO)]) == ("True", "Paused", WHO)
        runs = "A Job of the failed one that still runs is finished"
        assert message.endswith(f". The upgrade holds before attempt 2. {runs}. {COMMAND}")
        assert (
            objects.status(plan)["display"] | {"state": "Paused", "message": message} == objects.status(plan)["display"]
        )
        assert [condition(plan, type_)[:2] for type_ in ("Reconciling", "Ready")] == [
            ("True", "Paused"),
            ("Unknown", "Paused"),
        ]
        await asyncio.sleep(60)
        assert [event["message"] for event in await stage.events("UpgradePaused")] == ["Paused by alice"]
        await asyncio.sleep(2 * 3600 - 60)
        # The plan has failed, so that Harvester recovers VMs.
        assert objects.status(await stage.plan())["conditions"] == objects.status(plan)["conditions"]
        holding = HOLDINGS["a built-in upgrade"]
        await holding.begin(stage.simulation)
        await stage.patch(spec={"paused": None}, metadata=by("bob", {**BY_VERSION, **held, "paused": False}))
        plan = await queued(stage, holding.message)
        assert condition(plan, "Paused")[0] == ""
        assert "pausedBy" not in objects.status(plan)
        await holding.finish(stage.simulation)
        await stage.until("NodeUpgrading")
        await stage.patch(spec={"nodeUpgradeOption": None})
        await stage.succeed()
        rows = [(row.reason, row.message) for row in rows_of(await history_of(stage)) if row.id[3] == "p"]
        texts = ["Paused by alice", "Continued after 2 h 0 min (last change of the plan: bob)"]
        # The canary of the attempt has rows, too.
        assert set(zip(("UpgradePaused", "UpgradeContinued"), texts, strict=True)) <= set(rows)


async def test_attempt_mends_what_the_failure_left_half_way() -> None:
    async with failed(fault("manifests")) as (stage, scenario):
        scenario.repair()
        await RANCHER.begin(stage.simulation)
        await HOLDINGS["an addon that is updated"].begin(stage.simulation)
        await stage.patch(spec={"attempt": 2})
        plan = await stage.until_plan(lambda plan: "ClusterUpgraded" in phases_of(plan))
        assert objects.status(plan)["attempt"] == 2


@pytest.mark.rule("pipeline: a history stays complete until the next attempt begins")
async def test_failed_attempt_is_refused_after_a_day() -> None:
    async with failed(fault("pre-drain", SECOND)) as (stage, scenario):
        before = objects.status(await stage.plan())["nodeUpgradeStatuses"]
        holding = HOLDINGS["a built-in upgrade"]
        await holding.begin(stage.simulation)
        await stage.patch(spec={"attempt": 2})
        plan = await queued(stage, holding.message)
        await asyncio.sleep(2 * SHORTEST.total_seconds())
        assert is_complete(plan, await history_of(stage))
        await asyncio.sleep(DAY + 60)
        plan = await stage.plan()
        assert is_complete(plan, await history_of(stage))
        rows = [row.reason for row in rows_of(await history_of(stage))]
        assert [rows.count(reason) for reason in ("UpgradeFailed", "ConcurrentUpgradeBlocked")] == [2, 1]
        status = objects.status(plan)
        assert (status["attempt"], status["currentPhase"]) == (2, "Failed")
        assert condition(plan, "Progressing")[:2] == ("False", "Refused")
        assert status["display"]["state"] == "Failed: Refused"
        assert status["nodeUpgradeStatuses"] == before
        scenario.repair()
        await holding.finish(stage.simulation)
        await stage.patch(spec={"attempt": 3})
        await stage.until("NodeUpgrading")
        await stage.succeed()


async def test_each_time_in_the_queue_is_an_event() -> None:
    async with failed(fault("pre-drain", SECOND)) as (stage, scenario):
        scenario.repair()
        holding = HOLDINGS["a built-in upgrade"]
        await holding.begin(stage.simulation)
        await stage.patch(spec={"attempt": 2})
        await queued(stage, holding.message)
        # An attempt that its user pauses leaves the queue.
        await stage.patch(spec={"paused": True})
        await stage.until_plan(lambda plan: "queuedSince" not in objects.status(plan))
        await asyncio.sleep(WHILE)
        await stage.patch(spec={"paused": False})
        await queued(stage, holding.message)
        await asyncio.sleep(WHILE)
        assert [one["count"] for one in await stage.events() if one["reason"] == "ConcurrentUpgradeBlocked"] == [1, 1]
