"""Attempts of plans, and of clusters, that users and another version of the manager have changed since the failure."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from hack.simulation import Simulation
from tests.pipeline.test_attempts import AROUND, THIRD, nodes
from tests.pipeline.test_attempts_repeated import CREATE, MISSING, end, failed_run, refused
from tests.support.cluster.cluster_state import overridden_settings
from tests.support.cluster.simulate import SECOND, RepairableScenario, fault
from tests.support.managers.done_nodes import spared
from tests.support.managers.resumed_run import Work, comparable, denials, request_attempt, undisturbed
from tests.support.managers.toolkit_config import OWN
from tests.support.managers.upgrade import BY_VERSION, UpgradeRun, condition, node_states
from upgrade_manager.api.keys import ANNOTATION_SKIP_WEBHOOK, ANNOTATION_TOOLKIT_IMAGE, HARVESTER_SYSTEM
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import (
    DEPLOYMENTS,
    JOBS,
    NODES,
    SERVICES,
    UPGRADE_PLANS,
    VIRTUAL_MACHINE_IMAGES,
)

pytestmark = pytest.mark.full

PAUSED: dict[str, Any] = {**BY_VERSION, "nodeUpgradeOption": {"pauseNodes": [THIRD]}}
UNPAUSED: dict[str, Any] = {"pauseNodes": []}


@pytest.mark.parametrize("unpaused", ["before the attempt", "with the attempt", "in the attempt"])
@pytest.mark.thin
async def test_paused_node_waits_in_the_attempt(unpaused: str) -> None:
    async with failed_run("post-drain", spec=PAUSED) as (stage, work, scenario):
        if unpaused == "before the attempt":
            await stage.patch(spec={"nodeUpgradeOption": UNPAUSED})
        more = {"nodeUpgradeOption": UNPAUSED} if unpaused == "with the attempt" else {}
        await request_attempt(stage, work, **more)
        if unpaused == "in the attempt":
            await stage.until_node("UpgradePaused", node=THIRD)
            assert work.of(2) == sorted(["Plan skip-on", *nodes(os=SECOND), f"pre-drain {THIRD}"])
            await stage.patch(spec={"nodeUpgradeOption": UNPAUSED})
        await stage.succeed()
        assert work.of(2) == sorted([*AROUND, *nodes(THIRD, os=SECOND)])
        golden = await undisturbed(scenario, {**BY_VERSION, "nodeUpgradeOption": UNPAUSED})
        assert await comparable(stage) == golden


async def test_paused_node_of_the_failure_is_not_drained_twice() -> None:
    """The paused node has its suspended Job when another one fails."""
    scenario = RepairableScenario.of(**fault("pre-drain", SECOND))
    async with Simulation(scenario) as simulation:
        stage = replace(await UpgradeRun.set_up(simulation), options=OWN)
        work = simulation.middleware.hook = Work()
        async with stage.life():
            await stage.create_plan({**BY_VERSION, "nodeUpgradeOption": {"pauseNodes": ["node-0"]}})
            await stage.until_node("UpgradePaused", node="node-0")
            await stage.patch(spec={"nodeUpgradeOption": UNPAUSED})
            await stage.fail()
            scenario.repair()
            async with spared(stage):
                await request_attempt(stage, work)
                await stage.succeed()
        assert work.of(2) == sorted([*AROUND, *nodes(SECOND, THIRD)])


@pytest.mark.parametrize(
    ("edit", "kept"),
    [
        pytest.param({"upgradeStrategy": {"workerConcurrency": "2"}}, {"workerConcurrency": "2"}, id="a field"),
        pytest.param({"upgradeStrategy": None}, {}, id="the strategy removed"),
        pytest.param(
            {"upgradeStrategy": {"controlPlaneDrainOptions": {"preDrainHooks": None, "postDrainHooks": None}}},
            {},
            id="the hooks removed",
        ),
    ],
)
@pytest.mark.thin
async def test_attempt_puts_the_hooks_of_an_edited_strategy_back(edit: dict[str, Any], kept: dict[str, Any]) -> None:
    async with failed_run("post-drain") as (stage, work, _):
        await stage.patch_cluster(**edit)
        await request_attempt(stage, work)
        await stage.succeed()
        assert [one for one in work.of(2) if SECOND in one or "node-0" in one] == [f"post-drain {SECOND}"]
        strategy = (await overridden_settings(stage.simulation))[2] or {}
        assert "management.harvesterhci.io" not in str(strategy)
        assert {key: strategy.get(key) for key in kept} == kept


@pytest.mark.rule("control: an attempt has the toolkit image of its begin, also in the upgrade repository")
async def test_attempt_uses_the_toolkit_image_of_its_begin() -> None:
    async with failed_run("manifests", "") as (stage, work, scenario):
        assert await stage.events("ToolkitImageChosen") != []
        image = "me/own@sha256:" + "ab" * 32
        await stage.patch(metadata={"annotations": {ANNOTATION_TOOLKIT_IMAGE: image}})
        await asyncio.sleep(5)
        assert (await stage.plan())["status"]["toolkitImage"].get("digest", "") == ""
        await request_attempt(stage, work)
        await stage.until("NodeUpgrading")
        plan = await stage.plan()
        recorded = f"{plan['status']['toolkitImage']}"
        assert "ab" * 32 in recorded
        found = await stage.client.get(DEPLOYMENTS, "upgrade-repo", namespace=HARVESTER_SYSTEM)
        jobs = (await stage.client.list(JOBS, namespace=HARVESTER_SYSTEM)).items
        new = [job for job in jobs if objects.name(job).endswith("-a2")]
        images = {_image(one) for one in (found, *new)}
        assert images == {image}
        scenario.repair()
        await stage.succeed()
        messages = [event["message"] for event in await stage.events("ToolkitImageChosen")]
        assert [image in message for message in messages] == [False, True]
        assert [reason for reason, _ in await stage.warnings()] == ["UpgradeFailed"]


def _image(obj: dict[str, Any]) -> str:
    [container] = objects.spec(obj)["template"]["spec"]["containers"]
    return str(container["image"])


async def test_refused_attempt_keeps_the_toolkit_image() -> None:
    async with failed_run("pre-drain") as (stage, _, scenario):
        scenario.__dict__["nodes"] = RepairableScenario.of(nodes={"disks": {THIRD: {"used_gib": 299}}}).nodes
        before = (await stage.plan())["status"]["toolkitImage"]
        await stage.patch(metadata={"annotations": {ANNOTATION_TOOLKIT_IMAGE: "me/own@sha256:" + "ab" * 32}})
        await refused(stage)
        assert (await stage.plan())["status"]["toolkitImage"] == before


@pytest.mark.parametrize("has_image", [False, True], ids=["nothing kept", "the image kept"])
@pytest.mark.thin
async def test_plan_that_failed_under_an_earlier_version(*, has_image: bool) -> None:
    """That version knows no attempts, and has removed repository and image."""
    async with failed_run("pre-drain") as (stage, work, scenario):
        for resource, name in ((DEPLOYMENTS, "upgrade-repo"), (SERVICES, "upgrade-repo")):
            await stage.client.delete(resource, name, namespace=HARVESTER_SYSTEM)
        if not has_image:
            await stage.client.delete(VIRTUAL_MACHINE_IMAGES, "upgrade-iso", namespace=HARVESTER_SYSTEM)
        forgotten = MergePatch({"status": {"attempt": None, "attempts": None}})
        await stage.client.patch(UPGRADE_PLANS, stage.name, forgotten, subresource="status")
        work.attempt = 2 if not has_image else 1
        if has_image:
            await request_attempt(stage, work)
            await end(stage, scenario)
            assert work.of(2) == sorted([*AROUND, "Deployment repo", "Service repo", *nodes(SECOND, THIRD)])
            return
        cause, _, denied = await refused(stage)
        assert (cause, denied) == (MISSING, [f"{MISSING}. {CREATE}"])
        plan = await stage.plan()
        assert [one["attempt"] for one in plan["status"]["attempts"]] == [2]
        assert node_states(plan)[SECOND] == "PreDrainFailed"


@pytest.mark.rule("control: the webhook denies such an attempt; skip-webhook skips the checks of an attempt")
@pytest.mark.parametrize(
    ("annotations", "denied"),
    [
        pytest.param({ANNOTATION_TOOLKIT_IMAGE: "else/where"}, ["else/where", MISSING], id="both"),
        pytest.param({}, [MISSING], id="the image of the ISO"),
        pytest.param({ANNOTATION_SKIP_WEBHOOK: "true"}, [], id="skipped"),
    ],
)
@pytest.mark.thin
async def test_webhook_checks_the_attempt_with_its_toolkit_image(
    annotations: dict[str, str], denied: list[str]
) -> None:
    async with failed_run("pre-drain") as (stage, _, _):
        await stage.client.delete(VIRTUAL_MACHINE_IMAGES, "upgrade-iso", namespace=HARVESTER_SYSTEM)
        texts = await denials(stage, annotations, attempt=2)
        assert [any(one in text for text in texts) for one in denied] == [True] * len(denied)
        assert len(texts) == len(denied)


async def test_attempt_goes_on_after_a_repeated_drain_has_failed() -> None:
    """A user lets Rancher drain a node again that is done, while the last one is paused."""
    scenario = RepairableScenario.of()
    async with Simulation(scenario) as simulation:
        stage = replace(await UpgradeRun.set_up(simulation), options=OWN)
        work = simulation.middleware.hook = Work()
        settings = await overridden_settings(simulation)
        async with stage.life():
            await stage.create_plan(PAUSED)
            await stage.until_node("UpgradePaused", node=THIRD)
            scenario.fail_next("pre-drain")
            await stage.plan_again()
            failed = await stage.fail()
            assert node_states(failed) == {"node-0": "PostDrained", SECOND: "PostDrained", THIRD: "UpgradePaused"}
            scenario.repair()
            await request_attempt(stage, work, nodeUpgradeOption=UNPAUSED)
            await stage.succeed()
        assert [one for one in work.of(2) if one.startswith("post-drain")] == [f"post-drain {THIRD}"]
        assert await overridden_settings(simulation) == settings


@pytest.mark.parametrize("paused", [(), ("node-3",)], ids=["a worker waits", "a worker is paused"])
@pytest.mark.parametrize("what", ["pre-drain", "post-drain"])
@pytest.mark.thin
async def test_attempt_goes_on_with_a_worker_beside(what: str, paused: tuple[str, ...]) -> None:
    """Rancher asks for a node of each tier at the same time."""
    scenario = RepairableScenario.of(nodes={"count": 4}, **fault(what, SECOND))
    async with Simulation(scenario) as simulation:
        stage = replace(await UpgradeRun.set_up(simulation), options=OWN)
        work = simulation.middleware.hook = Work()
        async with stage.life():
            await stage.create_plan({**BY_VERSION, "nodeUpgradeOption": {"pauseNodes": [*paused]}})
            states = node_states(await stage.fail())
            scenario.repair()
            async with spared(stage):
                await request_attempt(stage, work)
                if paused:
                    await stage.until_node("UpgradePaused", node="node-3")
                    await stage.patch(spec={"nodeUpgradeOption": UNPAUSED})
                await stage.succeed()
        left = [node for node, state in states.items() if state != "PostDrained"]
        drained = [node for node in left if states[node] != "PostDrainFailed"]
        assert states[SECOND] == {"pre-drain": "PreDrainFailed", "post-drain": "PostDrainFailed"}[what]
        assert work.of(2) == sorted([*AROUND, *nodes(*drained, os="" if SECOND in drained else SECOND)])


@pytest.mark.rule("control: a node that was uncordoned since its post-drain failed is drained again")
@pytest.mark.parametrize("uncordoned", [True, False], ids=["uncordoned", "cordoned"])
@pytest.mark.thin
async def test_node_that_was_uncordoned_since_is_drained_again(*, uncordoned: bool) -> None:
    """VMs may run there again, which the upgrade of the operating system would stop."""
    async with failed_run("post-drain") as (stage, work, scenario):
        if uncordoned:
            await stage.client.patch(NODES, SECOND, MergePatch({"spec": {"unschedulable": False}}))
            await asyncio.sleep(60)
        await request_attempt(stage, work)
        if uncordoned:
            # The remedy of the blocker.
            await stage.until_plan(lambda plan: "NodeUncordoned" in str(plan["status"].get("blockers")))
            await stage.client.patch(NODES, SECOND, MergePatch({"spec": {"unschedulable": True}}))
        await (stage.succeed() if uncordoned else end(stage, scenario))
        again = [f"pre-drain {SECOND}"] if uncordoned else []
        assert work.of(2) == sorted([*AROUND, *again, *nodes(THIRD, os=SECOND)])


@pytest.mark.parametrize("plan_first", [True, False], ids=["the plan first", "the attempt first"])
async def test_attempt_and_new_plan_at_once(*, plan_first: bool) -> None:
    """Exactly one of them upgrades the nodes that are left."""
    async with failed_run("pre-drain") as (stage, _, _):
        following = replace(stage, name="next")
        steps = [following.create_plan(), stage.patch(spec={"attempt": 2})]
        for step in steps if plan_first else reversed(steps):
            await step
        # The queue is in order of creation.
        await stage.until("Succeeded")
        assert await following.until_ended() == "Failed"
        message = condition(await following.plan(), "Progressing")[2]
        assert message.startswith("Nothing to do: all 3 nodes run v1.8.0")
        drained = [name for name in stage.ledger.names("jobs") if "pre-drain" in name and THIRD in name]
        assert len(drained) == 1


async def test_attempt_of_a_paused_plan_begins_when_it_is_continued() -> None:
    async with failed_run("pre-drain") as (stage, work, scenario):
        work.attempt = 2
        await stage.patch(spec={"attempt": 2, "paused": True})
        await asyncio.sleep(300)
        assert work.of(2) == []
        await stage.patch(spec={"paused": None})
        await stage.until("NodeUpgrading")
        await end(stage, scenario)
        assert work.of(2) == sorted([*AROUND, *nodes(SECOND, THIRD)])
