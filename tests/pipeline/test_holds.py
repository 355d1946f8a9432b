"""Whole upgrades whose nodes hold before steps, and plans that pause after some nodes."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from tests.pipeline.test_plan_pauses import BREAK, DEFAULTS, upgrade
from tests.support.managers.begun_while_paused import holds
from tests.support.managers.toolkit_config import OWN
from tests.support.managers.upgrade import BY_VERSION, UpgradeRun, condition, node_states
from upgrade_manager.api.attribution import signed
from upgrade_manager.api.holds import late_holds
from upgrade_manager.api.keys import ANNOTATION_CONTINUE, ANNOTATION_LAST_CHANGED_BY
from upgrade_manager.api.node_states import upgraded_nodes
from upgrade_manager.api.spec import UpgradePlanSpec
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import MACHINES, NODES

pytestmark = pytest.mark.full
#: Rancher's order.
ORDER = ("node-0", "node-2", "node-1")


def with_option(**option: Any) -> dict[str, Any]:
    return {**BY_VERSION, "nodeUpgradeOption": option}


async def let_past(stage: UpgradeRun, *entries: str) -> None:
    """Set the annotation as bob, and wait until the manager has removed it."""
    text = ",".join(entries)
    spec = UpgradePlanSpec.read(objects.spec(await stage.plan()))
    annotations = {ANNOTATION_CONTINUE: text}
    annotations[ANNOTATION_LAST_CHANGED_BY] = signed("bob", spec, annotations)
    await stage.patch(metadata={"annotations": annotations})
    await stage.until_plan(lambda plan: ANNOTATION_CONTINUE not in objects.annotations_of(plan))


def _is_held(plan: Object, *, node: str, point: str) -> bool:
    entry = (objects.status(plan).get("nodeUpgradeStatuses") or {}).get(node) or {}
    return entry.get("holds") == point and holds(plan)


def _has_paused(plan: Object, *, after: int) -> bool:
    return holds(plan) and upgraded_nodes(objects.status(plan)) >= after


async def until_held(stage: UpgradeRun, node: str, point: str) -> None:
    await stage.until_plan(partial(_is_held, node=node, point=point))


EARLY = " (with Harvester's toolkit already before the Job that upgrades its system)"


async def assert_held(stage: UpgradeRun, node: str, point: str, *, who: str, seconds: float = BREAK) -> None:
    """Check that the node holds there, that nothing is a blocker, and that the condition says what to do."""
    await until_held(stage, node, point)
    await asyncio.sleep(seconds)
    plan = await stage.plan()
    assert _is_held(plan, node=node, point=point)
    status, reason, message = condition(plan, "Paused")
    assert (status, reason) == ("True", "PauseBefore")
    assert message.startswith(f"Paused by spec.nodeUpgradeOption.pauseBefore (last change of the plan: {who}) at ")
    early = EARLY if point == "Reboot" and stage.options != OWN else ""
    held = f"The upgrade holds before the {point.lower()} of {node}{early}, and nothing of it runs"
    assert message.endswith(f". {held}. To continue: upgrade-manager continue upgrade {node}")
    assert (objects.status(plan).get("blockers"), condition(plan, "Stalled")[0]) == (None, "")
    assert objects.status(plan)["display"]["state"] == "Paused"


@pytest.mark.rule("control: pauseAfter pauses the upgrade after so many nodes, until it is raised or removed")
async def test_plan_pauses_after_nodes() -> None:
    async with upgrade("three-nodes", with_option(pauseAfter=1)) as stage:
        for after, where in ((1, "the drain of node-2"), (2, "the drain of node-1"), (3, "phase ImageCleanup")):
            await stage.until_plan(partial(_has_paused, after=after))
            await asyncio.sleep(BREAK)
            plan = await stage.plan()
            assert upgraded_nodes(objects.status(plan)) == after
            status, reason, message = condition(plan, "Paused")
            assert (status, reason) == ("True", "PauseAfter")
            assert f". The upgrade holds before {where}, and nothing of it runs. " in message
            assert objects.status(plan).get("blockers") is None
            assert objects.spec(plan)["nodeUpgradeOption"] == {"pauseAfter": after}
            await stage.patch(spec={"nodeUpgradeOption": {"pauseAfter": after + 1 if after < 3 else None}})


@pytest.mark.rule("control: pauseAfter pauses the upgrade after so many nodes, until it is raised or removed")
async def test_removal_of_the_canary_lets_no_node_begin() -> None:
    async with upgrade("three-nodes", with_option(pauseAfter=1)) as stage:
        await stage.until_plan(partial(_has_paused, after=1))
        client, canary = stage.client, next(n for n, s in node_states(await stage.plan()).items() if s == "PostDrained")
        machines = (await client.list(MACHINES)).items
        machine = next(one for one in machines if objects.mapping(one, "status", "nodeRef").get("name") == canary)
        await client.delete(MACHINES, objects.name(machine), namespace=objects.namespace(machine))
        await client.delete(NODES, canary)
        before = len(stage.ledger.created)
        await asyncio.sleep(BREAK)
        assert condition(await stage.plan(), "Paused")[:2] == ("True", "PauseAfter")
        assert [name for path, name in stage.ledger.created[before:] if path.endswith("/jobs")] == []
        assert set(node_states(await stage.plan()).values()) == {"PostDrained", "ImagePreloaded"}
        await stage.patch(spec={"nodeUpgradeOption": {"pauseAfter": None}})


@pytest.mark.rule("control: pauseBefore holds each node before its drain and its reboot, until a user lets it go on")
@pytest.mark.parametrize(
    ("kind", "before_reboot"), [("harvester", "PreDrained"), ("own", "PostDraining")], ids=["harvester", "own"]
)
@pytest.mark.thin
async def test_each_node_holds_before_its_steps(kind: str, before_reboot: str) -> None:
    async with upgrade(
        "three-nodes", with_option(pauseBefore=["Drain", "Reboot"]), options=OWN if kind == "own" else DEFAULTS
    ) as stage:
        for node in ORDER:
            who, seconds = ("alice", BREAK) if node == ORDER[0] else ("bob", 60.0)
            await assert_held(stage, node, "Drain", who=who, seconds=seconds)
            assert node_states(await stage.plan())[node] == "ImagePreloaded"
            await let_past(stage, f"{node}:Drain")
            await assert_held(stage, node, "Reboot", who="bob", seconds=seconds)
            assert node_states(await stage.plan())[node] == before_reboot
            await let_past(stage, f"{node}:Reboot")
        plan = await stage.succeed()
        assert await stage.warnings() == []
        entries = objects.status(plan)["nodeUpgradeStatuses"].values()
        assert [(entry["continued"], entry.get("holds")) for entry in entries] == [(["Drain", "Reboot"], None)] * 3
        # The API server keeps an event for an hour.
        found = [event["message"] for event in await stage.events("NodeContinued")]
        assert found[-1] == "Node node-1: continued before its reboot (last change of the plan: bob)"


@pytest.mark.parametrize("kind", ["harvester", "own"])
async def test_only_node_holds_before_its_steps(kind: str) -> None:
    async with upgrade(
        "one-node", with_option(pauseBefore=["Drain", "Reboot"]), options=OWN if kind == "own" else DEFAULTS
    ) as stage:
        for point in ("Drain", "Reboot"):
            await assert_held(stage, "node-0", point, who="alice" if point == "Drain" else "bob")
            await let_past(stage, f"node-0:{point}")
        await stage.until("NodeUpgraded", "CleaningUp", "Succeeded")


@pytest.mark.rule("control: a hold that is added too late for a node is a warning of the webhook, which names the node")
@pytest.mark.parametrize("kind", ["harvester", "own"])
async def test_hold_added_while_a_job_runs_is_for_later_nodes(kind: str) -> None:
    async with upgrade("three-nodes", BY_VERSION, options=OWN if kind == "own" else DEFAULTS) as stage:
        plan = await stage.until_plan(lambda one: node_states(one).get("node-0") == "PostDraining")
        assert [text.split(":")[0] for text in late_holds(objects.status(plan), ["Reboot"])] == [
            "Node node-0 (PostDraining) is not held before its reboot once its Job has begun"
        ]
        await stage.patch(spec={"nodeUpgradeOption": {"pauseBefore": ["Reboot"]}})
        await until_held(stage, "node-2", "Reboot")
        entry = objects.status(await stage.plan())["nodeUpgradeStatuses"]["node-0"]
        assert (entry["state"], entry.get("continued")) == ("PostDrained", None)
        await stage.patch(spec={"nodeUpgradeOption": {"pauseBefore": None}})


async def test_steps_that_no_longer_hold_go_on() -> None:
    async with upgrade("three-nodes", with_option(pauseBefore=["Drain"])) as stage:
        await assert_held(stage, "node-0", "Drain", who="alice")
        await stage.patch(spec={"nodeUpgradeOption": {"pauseBefore": None}})
        plan = await stage.succeed()
        assert condition(plan, "Paused")[0] == ""
        assert await stage.warnings() == []


@pytest.mark.rule("control: an entry of a node that does not hold is removed with a warning")
async def test_entry_of_a_node_that_does_not_hold_is_removed() -> None:
    async with upgrade("three-nodes", with_option(pauseBefore=["Drain"])) as stage:
        await stage.until_recorded("ISODownloading")
        await let_past(stage, "node-0:Drain")
        await assert_held(stage, "node-0", "Drain", who="bob")
        await let_past(stage, "node-2:Drain", "node-0:Reboot")
        await asyncio.sleep(60)
        assert node_states(await stage.plan())["node-0"] == "ImagePreloaded"
        warned = [message for reason, message in await stage.warnings() if reason == "ContinueIgnored"]
        begin = f"Annotation {ANNOTATION_CONTINUE}: "
        end = "The entry is removed"
        assert warned == [
            f"{begin}Node node-0 does not hold before its drain; no node holds. {end}",
            f"{begin}Node node-2 does not hold before its drain; what holds is node-0:Drain. {end}",
            f"{begin}Node node-0 does not hold before its reboot; what holds is node-0:Drain. {end}",
        ]
        await stage.patch(spec={"nodeUpgradeOption": None})
