"""Whole upgrades whose Jobs check what they download."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from hack import scenario as scenarios
from hack.simulation import Simulation
from tests.support.managers.healthy_run import healthy_run
from tests.support.managers.upgrade import BY_VERSION, UpgradeRun, started
from tests.support.webhook.policy_prefixes import image_prefixes
from upgrade_manager import __version__
from upgrade_manager.api.image_name import ImageName
from upgrade_manager.api.keys import LABEL_COMPONENT, Component, ToolkitKind
from upgrade_manager.api.toolkit_image import ToolkitConfig
from upgrade_manager.cli.options import RunOptions
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import EVENTS, JOBS, PODS, SUC_PLANS
from upgrade_manager.resources.toolkit import ISO_CHECKSUMS

if TYPE_CHECKING:
    from tests.support.cluster.simulate import Simulate
    from upgrade_manager.kube.objects import Object

pytestmark = pytest.mark.sampled

OWN = RunOptions(
    toolkit=ToolkitConfig(version=__version__, kind=ToolkitKind.OWN, image=ImageName(repository="me/own"), tag="v9")
)
JOB = "upgrade-checksums"


async def passed_on(stage: UpgradeRun) -> set[str]:
    """Return the checksums that Jobs and Plans have, empty for none, besides those that download nothing."""
    jobs = [objects.spec(one)["template"]["spec"]["containers"][0] for one in await _downloading(stage)]
    plans = [objects.spec(one)["upgrade"] for one in (await stage.client.list(SUC_PLANS)).items]
    variables = [one.get("env") or one.get("envs") or [] for one in (*jobs, *plans)]
    return {next((e["value"] for e in given if e["name"] == ISO_CHECKSUMS), "") for given in variables}


async def _downloading(stage: UpgradeRun) -> list[Object]:
    jobs = (await stage.client.list(JOBS, namespace="harvester-system")).items
    wanted = {Component.CLUSTER_UPGRADE, Component.NODE_UPGRADE}
    return [one for one in jobs if objects.labels(one).get(LABEL_COMPONENT) in wanted]


async def warnings(stage: UpgradeRun) -> list[str]:
    return [one["message"] for one in (await stage.client.list(EVENTS)).items if one["reason"] == "ISOFilesNotChecked"]


@pytest.mark.full
@pytest.mark.rule(
    "pipeline: with our toolkit MetadataPopulate waits for a Job that computes checksums of the ISO's files",
    "workloads: Jobs that download from the repository have the checksums, where there are any",
)
@pytest.mark.servers
async def test_checksums_reach_every_job_that_downloads(simulate: Simulate) -> None:
    async with simulate("three-nodes") as simulation:
        stage = await UpgradeRun.set_up(simulation)
        stage.options = OWN
        seen: set[str] = set()
        async with image_prefixes(simulation, "me/own"), stage.life():
            await stage.create_plan(BY_VERSION)
            for phase in ("ImagePreloading", "ClusterUpgrading", "NodeUpgrading"):
                await stage.until_recorded(phase)
                seen |= await passed_on(stage)
            plan = await stage.succeed()
        checksums = objects.status(plan)["checksums"]
        assert (checksums["isoChecked"], checksums["checked"], len(checksums["files"])) == (True, True, 13)
        assert {json.dumps(json.loads(text)) for text in seen - {""}} == {json.dumps(checksums["files"])}
        assert [objects.name(one) for one in (await stage.client.list(JOBS)).items] == []
        assert await warnings(stage) == []


async def test_job_runs_beside_the_repository() -> None:
    async with (
        Simulation(scenarios.load("three-nodes").changed(durations={"checksums": 30})) as simulation,
        started(simulation, options=OWN) as stage,
    ):
        await stage.until("MetadataPopulating")

        def reports_the_job(plan: Object) -> bool:
            return "running since" in objects.condition(plan, "Progressing").get("message", "")

        plan = await stage.until_plan(reports_the_job)
        message = objects.condition(plan, "Progressing")["message"]
        assert message.startswith(f"Job harvester-system/{JOB}: attempt 1 of 3")
        pods = (await stage.client.list(PODS, namespace="harvester-system")).items
        places = {objects.labels(pod).get(LABEL_COMPONENT): set[str]() for pod in pods}
        for pod in pods:
            places[objects.labels(pod).get(LABEL_COMPONENT)].add(objects.spec(pod).get("nodeName", ""))
        assert places[Component.CHECKSUMS] < places[Component.REPO]
        # A Job that only reads does not outlive its plan.
        await stage.delete()
        await stage.until("deleted")
        await stage.settle()
        assert [objects.name(one) for one in (await stage.client.list(JOBS)).items] == []


@pytest.mark.rule(
    "pipeline: after 10 minutes without checksums MetadataPopulate goes on",
    "pipeline: a Job without a valid result leaves the files unchecked, with a Warning event",
)
@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        pytest.param({"hang": True}, f"Job harvester-system/{JOB} failed: DeadlineExceeded", id="hangs"),
        pytest.param({"message": "the ISO is corrupt"}, "the ISO is corrupt", id="fails"),
        pytest.param({"attempts": 1}, "", id="fails once"),
    ],
)
@pytest.mark.thin
async def test_upgrade_goes_on_without_checksums(fault: Object, reason: str) -> None:
    scenario = scenarios.load("three-nodes").changed(faults=[{"work": "checksums", **fault}])
    async with Simulation(scenario) as simulation:
        async with started(simulation, options=OWN) as stage:
            plan = await stage.succeed()
        checksums = objects.status(plan)["checksums"]
        assert checksums["checked"] is not bool(reason)
        assert reason in checksums.get("message", "")
        assert [reason in one for one in await warnings(stage)] == ([True] if reason else [])


@pytest.mark.rule("pipeline: with Harvester's toolkit no checksums are computed, and checksums says so")
def test_harvesters_toolkit_is_not_checked() -> None:
    checksums = objects.status(healthy_run().plan)["checksums"]
    assert (checksums["isoChecked"], checksums["checked"], "files" in checksums) == (True, False, False)
    assert "ISOFilesNotChecked" not in [event["reason"] for event in healthy_run().events]
