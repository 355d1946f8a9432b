"""Pauses of an upgrade of which something else runs: what the plan says, and what goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.pipeline.test_holds import let_past, with_option
from tests.pipeline.test_plan_pauses import upgrade
from tests.support.cluster.simulate import RepairableScenario
from tests.support.managers.begun_while_paused import holds
from tests.support.managers.upgrade import BY_VERSION, UpgradeRun, condition, node_states
from upgrade_manager.api.attribution import signed
from upgrade_manager.api.holds import held_nodes, late_holds
from upgrade_manager.api.keys import ANNOTATION_CONTINUE, ANNOTATION_LAST_CHANGED_BY
from upgrade_manager.api.spec import UpgradePlanSpec
from upgrade_manager.kube import objects

pytestmark = pytest.mark.full
#: Three nodes of the control plane, and workers, of which a user's strategy lets Rancher upgrade two at once.
WORKERS = RepairableScenario.of(nodes={"count": 5})
CANARY = "Paused by spec.nodeUpgradeOption.pauseAfter (last change of the plan: "


@asynccontextmanager
async def two_held() -> AsyncIterator[UpgradeRun]:
    """Provide an upgrade whose two workers hold before their drains."""
    both = {"node-3": "Drain", "node-4": "Drain"}
    async with upgrade(WORKERS) as stage:
        await stage.until_node("PostDraining", node="node-1")
        await stage.patch_cluster(upgradeStrategy={"workerConcurrency": "2"})
        await stage.patch(spec={"nodeUpgradeOption": {"pauseBefore": ["Drain"]}})
        await stage.until_plan(lambda plan: held_nodes(objects.status(plan)) == both and holds(plan))
        await asyncio.sleep(60)
        yield stage


async def messages(stage: UpgradeRun, reason: str) -> list[str]:
    return [event["message"] for event in await stage.events(reason)]


@pytest.mark.rule("control: nothing begins while the plan says that it holds, whenever users pause and continue it")
async def test_upgrade_goes_on_with_one_of_two_held_nodes() -> None:
    async with two_held() as stage:
        assert condition(await stage.plan(), "Paused")[2].endswith(
            " The upgrade holds before the drain of node-3, node-4, and nothing of it runs. "
            "To continue: upgrade-manager continue upgrade node-3"
        )
        await let_past(stage, "node-3:Drain")
        for state in ("PreDraining", "PostDraining", "WaitingReboot"):
            await stage.until_node(state, node="node-3")
            plan = await stage.plan()
            assert condition(plan, "Paused")[0] == ""
            assert objects.status(plan).keys().isdisjoint({"holds", "pausedBy", "pausedSince"})
            assert held_nodes(objects.status(plan)) == {"node-4": "Drain"}
        assert await messages(stage, "UpgradeContinued") == [
            "Continued after 1 min 0 s (last change of the plan: bob)",
        ]
        plan = await stage.until_plan(holds)
        assert node_states(plan)["node-3"] == "PostDrained"
        assert objects.status(plan)["holds"] == "before the drain of node-4"
        await let_past(stage, "node-4:Drain")


async def test_end_of_a_cause_beside_a_node_is_an_event() -> None:
    """The next cause, of a node that holds, ends before it is recorded, because the other node goes on."""
    async with two_held() as stage:
        await stage.patch(spec={"paused": True})
        await stage.until_plan(lambda plan: condition(plan, "Paused")[1] == "Paused")
        await asyncio.sleep(60)
        entry = {ANNOTATION_CONTINUE: "node-3:Drain"}
        spec = UpgradePlanSpec.read(with_option(pauseBefore=["Drain"]))
        annotations = {**entry, ANNOTATION_LAST_CHANGED_BY: signed("carol", spec, entry)}
        await stage.patch(spec={"paused": None}, metadata={"annotations": annotations})
        await stage.until_node("PreDraining", node="node-3")
        continued = await messages(stage, "UpgradeContinued")
        assert continued == ["Continued after 2 min 0 s (last change of the plan: carol)"]
        await stage.until_plan(holds)
        await let_past(stage, "node-4:Drain")


@pytest.mark.rule("control: condition Paused says since when, by whom, where it holds and what runs")
async def test_canary_that_comes_late_says_what_still_runs() -> None:
    async with upgrade("three-nodes") as stage:
        await stage.until_node("PostDraining", node="node-2")
        await stage.patch(spec={"nodeUpgradeOption": {"pauseAfter": 1}})
        plan = await stage.until_plan(lambda plan: condition(plan, "Paused")[0] == "True")
        status, reason, message = condition(plan, "Paused")
        assert (status, reason, message[: len(CANARY)]) == ("True", "PauseAfter", CANARY)
        runs = "node-2: post-drain Job harvester-system/upgrade-node-upgrade-post-drain-node-2"
        assert f". The upgrade will hold before the next node. Until then NodeUpgrade runs: {runs}" in message
        assert "holds" not in objects.status(plan)
        assert late_holds(objects.status(plan), ["Reboot"]) != []
        plan = await stage.until_plan(lambda plan: objects.status(plan).get("holds") == "before the drain of node-1")
        assert node_states(plan) == {"node-0": "PostDrained", "node-1": "ImagePreloaded", "node-2": "PostDrained"}
        assert condition(plan, "Paused")[1] == "PauseAfter"
        assert len(await messages(stage, "UpgradePaused")) == 1
        await stage.patch(spec={"nodeUpgradeOption": None})


@pytest.mark.parametrize(
    ("node", "state", "point"),
    [
        pytest.param("node-2", "PreDraining", "before the drain of node-2", id="its VMs leave"),
        pytest.param("node-1", "PostDraining", "before phase ImageCleanup", id="the last node"),
    ],
)
async def test_pause_names_where_it_will_hold(node: str, state: str, point: str) -> None:
    async with upgrade("three-nodes") as stage:
        await stage.until_node(state, node=node)
        await stage.patch(spec={"paused": True})
        plan = await stage.until_plan(lambda plan: condition(plan, "Paused")[1] == "Pausing")
        assert f". The upgrade will hold {point}. Until then NodeUpgrade runs: " in condition(plan, "Paused")[2]
        assert objects.status(await stage.until_plan(holds))["holds"] == point
        await stage.patch(spec={"paused": None})


@pytest.mark.parametrize("point", ["Drain", "Reboot"])
async def test_node_does_not_hold_once_its_point_is_removed(point: str) -> None:
    async with upgrade("three-nodes", with_option(pauseBefore=[point])) as stage:
        await stage.until_plan(holds)
        await stage.patch(spec={"nodeUpgradeOption": None})
        await stage.until_node("PostDraining", node="node-0")
        assert held_nodes(objects.status(await stage.plan())) == {}


async def test_point_removed_while_another_node_runs() -> None:
    async with two_held() as stage:
        await let_past(stage, "node-3:Drain")
        await stage.until_node("PostDraining", node="node-3")
        await stage.patch(spec=BY_VERSION | {"nodeUpgradeOption": None})
        await stage.until_plan(lambda plan: held_nodes(objects.status(plan)) == {}, seconds=5)
