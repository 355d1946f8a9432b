"""Whole upgrades whose nodes are surveyed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from hack import scenario as scenarios
from hack.actors.freezer import kubelet_of, registry_of
from hack.host import tree
from hack.simulation import Simulation
from tests.pipeline.phases.test_iso_checksums_runs import OWN
from tests.support.cluster.cluster_state import PAYLOAD, created_objects
from tests.support.cluster.survey_world import FULL, NO_STATE_PARTITION, report
from tests.support.managers.upgrade import BY_VERSION, UpgradeRun, condition, started
from tests.support.programs.polling import eventually
from tests.support.webhook.policy_prefixes import image_prefixes
from upgrade_manager.api.keys import CATTLE_SYSTEM, DEFAULT_TOOLKIT_IMAGE, MANAGED_LABEL, suc_node_label
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import JOBS, NODES, PODS, SUC_PLANS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.cluster.simulate import Simulate
    from upgrade_manager.kube.objects import Object

pytestmark = pytest.mark.sampled

SKIPPED: dict[str, Any] = {**BY_VERSION, "imagePreloadOption": {"concurrency": -1}}
SURVEY = "upgrade-survey"
LABEL = suc_node_label(SURVEY)
SURVEYED = "management.harvesterhci.io/upgrade-component=survey"


def found(node: str, *findings: Any) -> dict[str, Any]:
    """Return the fault of a node whose survey ends with these findings."""
    return {"work": "survey", "node": node, "exit_code": 0, "message": report(node, *findings)}


def scenario(*faults: dict[str, Any], **more: Any) -> scenarios.Scenario:
    return scenarios.load("three-nodes").changed(faults=list(faults), **more)


async def surveying(stage: UpgradeRun, *, pods: int = 1) -> list[Object]:
    """Wait for so many Pods of the survey, and return its Jobs."""

    async def seen() -> list[Object] | None:
        found = await stage.client.list(PODS, namespace=CATTLE_SYSTEM, label_selector=SURVEYED)
        if len(found.items) < pods:
            return None
        return (await stage.client.list(JOBS, namespace=CATTLE_SYSTEM, label_selector=SURVEYED)).items

    jobs: list[Object] = await eventually(seen, seconds=120)
    return jobs


async def results(stage: UpgradeRun) -> dict[str, bool]:
    """Return the recorded nodes, and True for those without findings."""
    survey = objects.status(await stage.plan()).get("survey") or {}
    return {node: entry["ok"] for node, entry in (survey.get("nodes") or {}).items()}


async def assert_clean(stage: UpgradeRun) -> None:
    """No object of the survey is left, and no label on a node."""
    await stage.settle()
    assert (await stage.client.list(SUC_PLANS)).items == []
    nodes = (await stage.client.list(NODES)).items
    assert [objects.name(node) for node in nodes if LABEL in objects.labels(node)] == []


@pytest.mark.rule(
    "workloads: with our toolkit ImagePreload runs upgrade_node.sh survey on all nodes by a second SUC Plan",
    "workloads: with Harvester's toolkit and no preload a Plan that runs true shows each node's image",
    "workloads: with Harvester's toolkit the preload itself shows that each node has the image",
    "pipeline: the nodes are surveyed also where the preload is skipped",
)
@pytest.mark.parametrize("name", ["three-nodes", pytest.param("one-node", marks=pytest.mark.full)])
@pytest.mark.parametrize(
    ("kind", "spec", "plans"),
    [
        pytest.param("own", BY_VERSION, ["upgrade-image-preload", SURVEY], id="own, preloaded"),
        pytest.param("own", SKIPPED, [SURVEY], id="own, skipped"),
        pytest.param("harvester", BY_VERSION, ["upgrade-image-preload"], id="harvester, preloaded"),
        pytest.param("harvester", SKIPPED, [SURVEY], id="harvester, skipped"),
    ],
)
@pytest.mark.servers
@pytest.mark.thin
async def test_nodes_are_surveyed(
    simulate: Simulate, name: str, kind: str, spec: dict[str, Any], plans: list[str]
) -> None:
    async with simulate(name) as simulation:
        stage = await UpgradeRun.set_up(simulation)
        if kind == "own":
            stage.options = OWN
        prefix = "me/own" if kind == "own" else DEFAULT_TOOLKIT_IMAGE
        async with image_prefixes(simulation, prefix), stage.life():
            await stage.create_plan(spec)
            await stage.until_recorded("ClusterUpgrading")
            # The next Plan may have been created since.
            assert stage.ledger.names("plans")[: len(plans)] == plans
            nodes = simulation.scenario.nodes.names if kind == "own" else ()
            assert await results(stage) == dict.fromkeys(nodes, True)
            if len(simulation.scenario.nodes.names) > 1:
                await stage.succeed()
                await assert_clean(stage)
        assert await stage.warnings() == []


@pytest.mark.rule(
    "pipeline: the survey's findings fail the plan in ImagePreload, all nodes in one message",
    "pipeline: spec.force records the survey's findings and goes on",
)
@pytest.mark.parametrize("force", [False, True], ids=["refused", "forced"])
async def test_findings_of_two_nodes_are_one_message(*, force: bool) -> None:
    faults = (found("node-1", NO_STATE_PARTITION, FULL), found("node-2", FULL))
    async with Simulation(scenario(*faults)) as simulation:
        stage = await UpgradeRun.set_up(simulation)
        stage.options = OWN
        text = (
            "the node survey found problems: node-1: COS_STATE is not mounted. Mount it (state-partition); "
            "node-1, node-2: The kernel arguments have no room (grub-environment)"
        )
        async with stage.life():
            await stage.create_plan({**SKIPPED, "force": force})
            plan = await (stage.succeed() if force else stage.fail())
            await assert_clean(stage)
        assert await results(stage) == {"node-0": True, "node-1": False, "node-2": False}
        if force:
            message = f"The upgrade goes on, because of spec.force, although {text}"
            assert await stage.warnings() == [("NodeSurveyFindings", message)]
        else:
            cause = f"{text}; spec.force: true skips this check"
            assert condition(plan, "Progressing") == ("False", "Failed", cause)
            assert await stage.warnings() == [("UpgradeFailed", f"Upgrade failed: {cause}")]
            assert stage.ledger.names("jobs") == ["upgrade-checksums"]


async def test_toolkits_own_checks_reach_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command runs on the simulated hosts; a user's file hides the new release on one."""
    fill = tree.fill

    def fill_with_custom_file(root: Path, *, os_image: str, held: bool) -> None:
        fill(root, os_image=os_image, held=held)
        if root.name == "node-1":
            written = "stages: {boot: [{files: [{path: /etc/os-release, content: x}]}]}"
            (root / "oem/99_custom.yaml").write_text(written, encoding="utf-8")

    monkeypatch.setattr(tree, "fill", fill_with_custom_file)
    async with Simulation("three-nodes") as simulation:
        async with started(simulation, SKIPPED, options=OWN) as stage:
            plan = await stage.fail()
        assert condition(plan, "Progressing")[2] == (
            "the node survey found problems: node-1: /oem/99_custom.yaml writes /etc/os-release at each boot, and "
            "hides the release's name in that file. Remove that part (oem-files); spec.force: true skips this check"
        )


@pytest.mark.rule("pipeline: Failed keeps the failed Job and its Pods until the plan succeeds or is deleted")
async def test_failed_job_of_the_survey_is_kept() -> None:
    fault = {"work": "survey", "node": "node-1", "message": "unknown command: survey"}
    async with (
        Simulation(scenario(fault, upgrade_controller={"backoff_limit": 1})) as simulation,
        started(simulation, SKIPPED, options=OWN) as stage,
    ):
        plan = await stage.fail()
        await assert_clean(stage)
        cause = condition(plan, "Progressing")[2]
        failed = "Node node-1: node survey failed 2 times: unknown command: survey"
        assert cause.startswith(f"{failed}. Log: kubectl logs -n cattle-system job/apply-upgrade-survey-on-node-1-")
        [job] = [one for one in await created_objects(simulation) if not one.startswith(PAYLOAD)]
        assert job.startswith("Job cattle-system/apply-upgrade-survey-on-node-1-")
        await stage.delete()
        await stage.until("deleted")
        await stage.settle()
        assert await created_objects(simulation) == []


@pytest.mark.rule("pipeline: a node without a readable report is named, and the survey is repeated")
async def test_unreadable_report_is_named_and_repeated() -> None:
    fault = {"work": "survey", "node": "node-1", "exit_code": 0, "message": "panic: no such file"}
    async with Simulation(scenario(fault)) as simulation, started(simulation, SKIPPED, options=OWN) as stage:

        def is_stalled(plan: Object) -> bool:
            return bool(condition(plan, "Stalled")[1])

        def is_repeated(plan: Object) -> bool:
            return not is_stalled(plan) and stage.ledger.names("plans") == [SURVEY] * 2

        plan = await stage.until_plan(is_stalled)
        assert "node survey ended without a readable report of node-1" in condition(plan, "Progressing")[2]
        [blocker] = objects.status(plan)["blockers"]
        assert (blocker["reason"], blocker["kind"], blocker["node"]) == ("ContainerFailing", "Node", "node-1")
        await stage.until_plan(is_repeated, seconds=400)
        await stage.delete()
        await stage.until("deleted")
        await assert_clean(stage)


@pytest.mark.rule("pipeline: a report of the survey counts if its Pod belongs to this plan's Plan, and stays recorded")
async def test_job_that_is_created_again_reports_again() -> None:
    async with (
        Simulation(scenario(durations={"survey": 20})) as simulation,
        started(simulation, SKIPPED, options=OWN) as stage,
    ):
        job = (await surveying(stage, pods=3))[0]
        await stage.client.delete(JOBS, objects.name(job), namespace=CATTLE_SYSTEM)
        # The controller creates the Job again once the Plan changes.
        patch = MergePatch({"metadata": {"annotations": {"cattle.io/touched": "x"}}})
        await stage.client.patch(SUC_PLANS, SURVEY, patch, namespace=CATTLE_SYSTEM)
        await stage.until_recorded("ClusterUpgrading")
        assert await results(stage) == dict.fromkeys(("node-0", "node-1", "node-2"), True)
        assert stage.ledger.names("plans").count(SURVEY) == 1


@pytest.mark.rule("pipeline: a report of the survey counts if its Pod belongs to this plan's Plan, and stays recorded")
async def test_report_outlives_its_expired_job() -> None:
    """One node is off for longer than the Jobs of the others last."""
    async with (
        Simulation(scenario(found("node-0", FULL), upgrade_controller={"ttl": 60})) as simulation,
        started(simulation, SKIPPED, options=OWN) as stage,
    ):
        await stage.until_recorded("ImagePreloading")
        simulation.freezer.freeze(kubelet_of("node-2"))
        await surveying(stage, pods=2)
        await asyncio.sleep(150)
        plan = await stage.plan()
        assert "done on 2 of 3 nodes, waiting for node-2; findings on node-0" in condition(plan, "Progressing")[2]
        [blocker] = objects.status(plan)["blockers"]
        assert (blocker["reason"], blocker["node"]) == ("PodPending", "node-2")
        simulation.freezer.thaw(kubelet_of("node-2"))
        plan = await stage.fail()
        assert condition(plan, "Progressing")[2].startswith("the node survey found problems: node-0: The kernel")


async def test_node_that_joins_is_surveyed() -> None:
    async with Simulation(scenario(found("node-2", FULL), durations={"survey": 20})) as simulation:
        client = simulation.client()
        await client.patch(NODES, "node-2", MergePatch({"metadata": {"labels": {MANAGED_LABEL: None}}}))
        async with started(simulation, SKIPPED, options=OWN) as stage:
            await eventually(lambda: _degraded(stage), seconds=300)
            await client.patch(NODES, "node-2", MergePatch({"metadata": {"labels": {MANAGED_LABEL: "true"}}}))
            plan = await stage.fail()
        assert condition(plan, "Progressing")[2].startswith("the node survey found problems: node-2: The kernel")


async def _degraded(stage: UpgradeRun) -> bool:
    return condition(await stage.plan(), "Degraded")[0] == "True"


@pytest.mark.rule("blockers: ImageMissing names the node and the image that the node cannot pull")
@pytest.mark.parametrize("kind", ["own", "harvester"])
@pytest.mark.thin
async def test_missing_image_is_named_before_anything_changes(kind: str) -> None:
    image = "me/own:v9" if kind == "own" else "rancher/harvester-upgrade-toolkit:v1.8.0"
    async with Simulation("three-nodes") as simulation:
        stage = await UpgradeRun.set_up(simulation)
        if kind == "own":
            stage.options = OWN
        async with stage.life():
            await stage.create_plan(SKIPPED)
            await stage.until("ImagePreloading")
            simulation.freezer.freeze(registry_of("node-1"))

            def is_stalled(plan: Object) -> bool:
                return bool(condition(plan, "Stalled")[1])

            plan = await stage.until_plan(is_stalled, seconds=10)
            await asyncio.sleep(200)
            plan = await stage.plan()
            [blocker] = objects.status(plan)["blockers"]
            assert (blocker["reason"], blocker["kind"], blocker["node"]) == ("ImageMissing", "Pod", "node-1")
            assert f"node node-1 lacks image {image}, which all Jobs" in blocker["message"]
            assert f"crictl pull {image}" in blocker["remedy"]
            assert "containerd-registry" in blocker["remedy"]
            assert [job for job in stage.ledger.names("jobs") if job != "upgrade-checksums"] == []
            simulation.freezer.thaw(registry_of("node-1"))
            plan = await stage.succeed()
        assert "blockers" not in objects.status(plan)
        events = {event["reason"] for event in await stage.events()}
        assert {"ImageMissing", "BlockerCleared"} <= events


@pytest.mark.parametrize("kind", ["own", "harvester"])
@pytest.mark.thin
async def test_plan_of_another_owner_is_left_alone(kind: str) -> None:
    async with Simulation("three-nodes") as simulation:
        stage = await UpgradeRun.set_up(simulation)
        if kind == "own":
            stage.options = OWN
        manifest = {
            "apiVersion": SUC_PLANS.api_version,
            "kind": SUC_PLANS.kind,
            "metadata": {"name": SURVEY, "namespace": CATTLE_SYSTEM},
            "spec": {"upgrade": {"image": "x"}, "version": "v1", "concurrency": 0},
        }
        await stage.client.create(SUC_PLANS, manifest)
        async with stage.life():
            await stage.create_plan(SKIPPED)
            await eventually(lambda: _degraded(stage), seconds=300)
            message = condition(await stage.plan(), "Degraded")[2]
            assert f"Plan cattle-system/{SURVEY} already exists" in message
            await stage.client.delete(SUC_PLANS, SURVEY, namespace=CATTLE_SYSTEM)
            await stage.succeed()


async def test_later_plan_of_the_name_surveys_again() -> None:
    async with (
        Simulation(scenario(found("node-1", FULL))) as simulation,
        started(simulation, SKIPPED, options=OWN) as stage,
    ):
        await stage.fail()
        await stage.delete()
        await stage.until("deleted")
        # The label of the deleted Plan would make the controller skip the node.
        await stage.client.patch(NODES, "node-1", MergePatch({"metadata": {"labels": {LABEL: "x"}}}))
        await stage.create_plan(SKIPPED)
        await stage.fail()
        assert await results(stage) == {"node-0": True, "node-1": False, "node-2": True}
        assert stage.ledger.names("plans") == [SURVEY] * 2
