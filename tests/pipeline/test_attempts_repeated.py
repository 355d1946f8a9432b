"""Attempts after more than one failure, after a day, and after others have changed the cluster in between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from typing import Any

import pytest

from hack.simulation import Simulation
from tests.pipeline.test_attempts import AROUND, THIRD, nodes
from tests.support.cluster.cluster_state import created_objects
from tests.support.cluster.simulate import SECOND, RepairableScenario, fault
from tests.support.managers.done_nodes import spared
from tests.support.managers.resumed_run import Work, comparable, denials, request_attempt, skip_a_day, undisturbed
from tests.support.managers.toolkit_config import OWN
from tests.support.managers.upgrade import BY_IMAGE, BY_VERSION, UpgradeRun, condition, node_states, phases_of
from upgrade_manager.api.keys import LABEL_PLAN
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import JOBS, VIRTUAL_MACHINE_IMAGES
from upgrade_manager.resources.owner import created_in

pytestmark = pytest.mark.full

#: The component of the Plan that does the work.
PLANS = {"prepare": "image-preload", "skip-on": "skip-on"}


@asynccontextmanager
async def failed_run(
    work: str,
    node: str = SECOND,
    *,
    spec: dict[str, Any] = BY_VERSION,
    name: str = "three-nodes",
    is_last: bool = True,
) -> AsyncIterator[tuple[UpgradeRun, Work, RepairableScenario]]:
    """Run a manager whose plan has failed there, with a scenario that is repaired for what follows.

    While the plan is the last one, nothing may reach the nodes that are done.
    """
    scenario = RepairableScenario.of(name, **fault(work, node))
    async with Simulation(scenario) as simulation:
        stage = replace(await UpgradeRun.set_up(simulation), options=OWN)
        made = simulation.middleware.hook = Work()
        async with stage.life():
            await stage.create_plan(spec)
            await stage.fail()
            scenario.repair()
            async with spared(stage) if is_last else nullcontext():
                yield stage, made, scenario


async def end(stage: UpgradeRun, scenario: RepairableScenario) -> None:
    """Check that the upgrade succeeds, and ends as one that has never failed."""
    scenario.repair()
    await stage.succeed()
    assert stage.ledger.conflicts == []
    assert await comparable(stage) == await undisturbed(scenario)


@pytest.mark.parametrize(
    ("first", "second", "left"),
    [
        pytest.param(("pre-drain", SECOND), ("pre-drain", SECOND), nodes(SECOND, THIRD), id="the same drain"),
        pytest.param(("post-drain", SECOND), ("post-drain", SECOND), nodes(THIRD, os=SECOND), id="the same node"),
        pytest.param(("pre-drain", SECOND), ("post-drain", SECOND), nodes(THIRD, os=SECOND), id="the next Job"),
        pytest.param(("pre-drain", SECOND), ("pre-drain", THIRD), nodes(THIRD), id="another node"),
        pytest.param(("post-drain", "node-0"), ("post-drain", SECOND), nodes(THIRD, os=SECOND), id="the next node"),
    ],
)
@pytest.mark.thin
async def test_second_failure_is_followed_by_a_third_attempt(
    first: tuple[str, str], second: tuple[str, str], left: list[str]
) -> None:
    async with failed_run(*first) as (stage, work, scenario):
        scenario.fail_next(*second)
        await request_attempt(stage, work)
        failed = await stage.fail()
        assert [(one["attempt"], one["node"]) for one in failed["status"]["attempts"]] == [
            (1, first[1]),
            (2, second[1]),
        ]
        scenario.repair()
        await request_attempt(stage, work)
        await end(stage, scenario)
        assert work.of(3) == sorted([*AROUND, *left])


@pytest.mark.rule("control: the failed Jobs of all attempts stay until the plan succeeds or is deleted")
@pytest.mark.parametrize("is_deleted", [False, True], ids=["succeeded", "deleted"])
@pytest.mark.parametrize("works", [("prepare", "pre-drain"), ("skip-on", "post-drain")], ids=", then ".join)
@pytest.mark.thin
async def test_failed_jobs_of_all_attempts_stay(works: tuple[str, str], *, is_deleted: bool) -> None:
    first, second = works
    async with failed_run(first) as (stage, work, scenario):
        scenario.fail_next(second, SECOND)
        await request_attempt(stage, work)
        await stage.fail()
        await skip_a_day()
        one, two = await failed_jobs(stage)
        assert (f"-{PLANS[first]}-" in one, two.startswith(f"upgrade-node-upgrade-{second}-")) == (True, True)
        scenario.repair()
        if is_deleted:
            await stage.delete()
        else:
            await request_attempt(stage, work)
            await end(stage, scenario)
        assert await failed_jobs(stage) == []


async def failed_jobs(stage: UpgradeRun) -> list[str]:
    """Return the names of the plan's Jobs that have failed, those of the first attempt first."""
    jobs = (await stage.client.list(JOBS, label_selector=f"{LABEL_PLAN}={stage.name}")).items
    failed = [job for job in jobs if objects.condition(job, "Failed").get("status") == "True"]
    return [objects.name(job) for job in sorted(failed, key=created_in)]


async def test_manager_that_starts_later_begins_the_attempt() -> None:
    """No manager runs between the failure and the request."""
    scenario = RepairableScenario.of(**fault("pre-drain", SECOND))
    async with Simulation(scenario) as simulation:
        stage = replace(await UpgradeRun.set_up(simulation), options=OWN)
        work = simulation.middleware.hook = Work()
        async with stage.life():
            await stage.create_plan()
            await stage.fail()
        scenario.repair()
        work.attempt = 2
        await stage.patch(spec={"attempt": 2})
        await skip_a_day()
        async with stage.life():
            await stage.until("NodeUpgrading")
            await end(stage, scenario)
        assert work.of(2) == sorted([*AROUND, *nodes(SECOND, THIRD)])


async def refused(stage: UpgradeRun, *, attempt: int = 2) -> tuple[str, list[str], list[str]]:
    """Request the attempt without the webhook; return its cause, the Warning events, and what is denied with it."""
    denied = await denials(stage, attempt=attempt)
    await stage.patch(spec={"attempt": attempt})
    plan = await stage.until_plan(lambda plan: objects.status(plan).get("attempt") == attempt)
    await asyncio.sleep(60)
    assert objects.status(await stage.plan()) == plan["status"]
    assert phases_of(plan)[-1] == plan["status"]["currentPhase"] == "Failed"
    assert plan["status"]["display"]["state"].startswith("Failed: ")
    assert objects.finalizers(plan) == []
    warnings = [message for reason, message in await stage.warnings() if reason == "UpgradeFailed"]
    return plan["status"]["attempts"][-1]["cause"], warnings[1:], denied


MISSING = "VirtualMachineImage harvester-system/upgrade-iso does not exist, so that no attempt can go on with it"
TAKEN = "UpgradePlan next has taken over, so that this one has no further attempt"
CREATE = "Create a new UpgradePlan"


@pytest.mark.rule(
    "control: an attempt without the ISO's image or after another plan ends at once, with one message",
    "control: the webhook denies such an attempt; skip-webhook skips the checks of an attempt",
)
async def test_attempt_without_the_image_is_refused() -> None:
    async with failed_run("post-drain", is_last=False) as (stage, work, _):
        await stage.client.delete(VIRTUAL_MACHINE_IMAGES, "upgrade-iso", namespace="harvester-system")
        before = await created_objects(stage.simulation)
        work.attempt = 2
        cause, warnings, denied = await refused(stage)
        assert (cause, warnings) == (MISSING, [f"Upgrade failed: {MISSING}. {CREATE}"])
        assert denied == [f"{MISSING}. {CREATE}"]
        assert work.of(2) == []
        assert await created_objects(stage.simulation) == before
        assert node_states(await stage.plan())[SECOND] == "PostDrainFailed"
        following = replace(stage, name="next")
        await following.create_plan()
        await following.succeed()


@pytest.mark.rule(
    "control: an attempt without the ISO's image or after another plan ends at once, with one message",
    "control: the webhook denies such an attempt; skip-webhook skips the checks of an attempt",
)
@pytest.mark.parametrize("spec", [BY_VERSION, BY_IMAGE], ids=["by version", "by image"])
@pytest.mark.parametrize("when", ["while it runs", "after its end"])
@pytest.mark.thin
async def test_attempt_after_another_plan_is_refused(spec: dict[str, Any], when: str) -> None:
    async with failed_run("pre-drain", spec=spec, is_last=False) as (stage, _, _):
        following = replace(stage, name="next")
        await following.create_plan(spec)
        await following.until_node("PreDraining", node=SECOND)
        if when == "after its end":
            await following.succeed()
        before = len(stage.ledger.created)
        cause, warnings, denied = await refused(stage)
        assert (cause, warnings) == (TAKEN, [f"Upgrade failed: {TAKEN}. {CREATE}"])
        assert denied == [f"{TAKEN}. {CREATE}"]
        assert condition(await stage.plan(), "Degraded")[1] == "TakenOver"
        if when == "while it runs":
            await following.succeed()
        assert await following.warnings() == []
        assert [path for path, name in stage.ledger.created[before:] if name.endswith("-a2")] == []
        # The refusal is remembered.
        assert (await refused(stage, attempt=3))[0] == TAKEN


async def test_attempt_whose_checks_fail_is_refused_until_they_pass() -> None:
    async with failed_run("pre-drain") as (stage, work, scenario):
        disks = RepairableScenario.of(nodes={"disks": {THIRD: {"used_gib": 299}}}).nodes
        scenario.__dict__["nodes"] = disks
        work.attempt = 2
        cause, warnings, denied = await refused(stage)
        assert cause.startswith("Disk usage with 13 GiB of new images would exceed")
        assert (len(warnings), denied) == (1, [])
        assert work.of(2) == []
        scenario.repair()
        await request_attempt(stage, work)
        await end(stage, scenario)
        assert work.of(3) == sorted([*AROUND, *nodes(SECOND, THIRD)])
