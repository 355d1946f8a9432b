"""The survey of the nodes, the second Plan of ImagePreload."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from hack.virtual_time import virtual_now
from tests.support.cluster.harvester import RECORDED, RELEASE
from tests.support.cluster.survey_world import FULL, NO_STATE_PARTITION, OWN, PLACE, PLAN, SurveyWorld, report
from upgrade_manager.api.keys import suc_node_label
from upgrade_manager.api.remedy import remedy_text
from upgrade_manager.api.survey import failed_survey
from upgrade_manager.api.timestamps import format_time
from upgrade_manager.blockers.known_wait import UnpulledImageWait, UnreadReportWait
from upgrade_manager.blockers.wait import WaitKind
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import JOBS, NODES, SUC_PLANS, UPGRADE_PLANS
from upgrade_manager.pipeline.outcome import Completed, Failed, Waiting
from upgrade_manager.pipeline.phases.image_preload import ImagePreload

if TYPE_CHECKING:
    from tests.support.cluster.harvester import Harvester
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.pipeline.outcome import PhaseResult

SKIPPED: dict[str, Any] = {"version": "v1.7.0", "imagePreloadOption": {"concurrency": -1}}
FORCED = {**SKIPPED, "force": True}
IMAGE = "docker.io/rancher/harvester-upgrade-toolkit:v1.7.0"
row = pytest.param


async def started(
    cluster: Harvester, *nodes: str, spec: Object = SKIPPED, toolkit: Object = OWN
) -> tuple[ReconcileContext, SurveyWorld]:
    """Return the context of a plan whose survey has just begun on these nodes, and its world."""
    await cluster.nodes(*nodes)
    ctx = await context(cluster, spec=spec, toolkit=toolkit)
    assert isinstance(await run(ctx), Waiting)
    return ctx, SurveyWorld(cluster)


async def context(cluster: Harvester, *, spec: Object = SKIPPED, toolkit: Object = OWN) -> ReconcileContext:
    status = {"releaseMetadata": RELEASE, "previousVersion": "v1.6.1", "currentPhase": "ImagePreloading"}
    return cluster.context(await cluster.plan(spec=spec, status=status, toolkit=toolkit))


async def run(ctx: ReconcileContext) -> PhaseResult:
    return await ImagePreload().run(ctx)


async def waiting(ctx: ReconcileContext) -> Waiting:
    found = await run(ctx)
    assert isinstance(found, Waiting)
    return found


async def list_image(cluster: Harvester, *nodes: str, image: str = IMAGE) -> None:
    for name in nodes:
        node = await cluster.client.get(NODES, name)
        images = [{"names": ["docker.io/rancher/pause:3.6"]}, {"names": [image], "sizeBytes": 1}]
        await cluster.client.update(
            NODES, {**node, "status": {**objects.status(node), "images": images}}, subresource="status"
        )


@pytest.mark.rule(
    "workloads: with our toolkit ImagePreload runs upgrade_node.sh survey on all nodes by a second SUC Plan",
    "pipeline: the nodes are surveyed also where the preload is skipped",
)
@pytest.mark.parametrize("spec", [{"version": "v1.7.0"}, SKIPPED], ids=["preloaded", "skipped"])
async def test_own_toolkit_surveys_after_the_preload(cluster: Harvester, spec: Object) -> None:
    await cluster.nodes("n1", "n2", "n3")
    ctx = await context(cluster, spec=spec)
    if spec is not SKIPPED:
        await run(ctx)
        assert await cluster.names(SUC_PLANS) == ["up-image-preload"]
        await cluster.complete_plan("up-image-preload", "n1", "n2", "n3")
    for _ in range(2):
        found = await waiting(ctx)
        assert found.message == "Survey done on 0 of 3 nodes"
        assert [(wait.kind, wait.name) for wait in found.waits] == [(WaitKind.PLAN, PLAN)]
    plan = (await cluster.find(SUC_PLANS, PLAN, PLACE))["spec"]
    assert plan["concurrency"] == 3
    assert (plan["upgrade"]["command"], plan["upgrade"]["args"]) == (["upgrade_node.sh"], ["survey"])


@pytest.mark.rule(
    "workloads: with Harvester's toolkit and no preload a Plan that runs true shows each node's image",
    "workloads: with Harvester's toolkit the preload itself shows that each node has the image",
)
@pytest.mark.parametrize(
    ("spec", "listing", "plans"),
    [
        row({"version": "v1.7.0"}, (), ["up-image-preload"], id="the preload has shown the images"),
        row(SKIPPED, (), [PLAN], id="no node lists the image"),
        row(SKIPPED, ("n1",), [PLAN], id="one node lists the image"),
        row(SKIPPED, ("n1", "n2"), [], id="both nodes list the image"),
    ],
)
async def test_harvesters_toolkit_shows_its_image(
    cluster: Harvester, spec: Object, listing: tuple[str, ...], plans: list[str]
) -> None:
    await cluster.nodes("n1", "n2")
    await list_image(cluster, *listing)
    ctx = await context(cluster, spec=spec, toolkit=RECORDED)
    found = await run(ctx)
    if plans == [PLAN]:
        assert isinstance(found, Waiting)
        assert (await cluster.find(SUC_PLANS, PLAN, PLACE))["spec"]["upgrade"]["command"] == ["true"]
        await cluster.complete_plan(PLAN, "n1", "n2")
    elif plans:
        await cluster.complete_plan("up-image-preload", "n1", "n2")
    assert await run(ctx) == Completed()
    assert await cluster.names(SUC_PLANS) == plans
    assert ctx.status["survey"] is None


async def test_another_tag_of_the_image_does_not_count(cluster: Harvester) -> None:
    await cluster.nodes("n1")
    await list_image(cluster, "n1", image=f"{IMAGE}-rc1")
    assert isinstance(await run(await context(cluster, toolkit=RECORDED)), Waiting)


@pytest.mark.rule(
    "pipeline: ImagePreload completes once both Plans are complete and each node has reported",
    "api: survey has the result of each node that has reported, with findings of bounded size",
)
async def test_reports_complete_the_phase(cluster: Harvester) -> None:
    ctx, world = await started(cluster, "n1", "n2")
    await world.ended("n1", report("n1"))
    await world.job("n2")
    found = await waiting(ctx)
    assert found.message == "Survey done on 1 of 2 nodes, waiting for n2"
    assert [wait.node for wait in found.waits] == ["n2"]
    await cluster.client.delete(JOBS, f"apply-{PLAN}-on-n2", namespace=PLACE)
    await world.ended("n2", report("n2"))
    await world.complete("n1", "n2")
    assert await run(ctx) == Completed()
    uid = objects.uid(await world.plan())
    assert ctx.status["survey"] == {"plan": uid, "nodes": {"n1": {"ok": True}, "n2": {"ok": True}}}
    assert cluster.recorder.recorded == []
    assert ctx.status["nodeUpgradeStatuses"] is None


@pytest.mark.rule(
    "pipeline: the survey's findings fail the plan in ImagePreload, all nodes in one message",
    "pipeline: spec.force records the survey's findings and goes on",
)
@pytest.mark.parametrize("spec", [SKIPPED, FORCED], ids=["refused", "forced"])
async def test_findings_fail_the_plan_unless_forced(cluster: Harvester, spec: Object) -> None:
    ctx, world = await started(cluster, "n1", "n2", "n3", spec=spec)
    await world.ended("n1", report("n1", NO_STATE_PARTITION, FULL))
    await world.ended("n2", report("n2"))
    await world.job("n3")
    found = await waiting(ctx)
    assert found.message.endswith("Survey done on 2 of 3 nodes, waiting for n3; findings on n1")
    await cluster.client.delete(JOBS, f"apply-{PLAN}-on-n3", namespace=PLACE)
    await world.ended("n3", report("n3", FULL))
    await world.complete("n1", "n2", "n3")
    result = await run(ctx)
    text = (
        "the node survey found problems: n1: COS_STATE is not mounted. Mount it (state-partition); "
        "n1, n3: The kernel arguments have no room (grub-environment)"
    )
    if spec is SKIPPED:
        assert result == Failed(cause=f"{text}; spec.force: true skips this check")
        assert cluster.recorder.recorded == []
    else:
        assert result == Completed()
        message = f"The upgrade goes on, because of spec.force, although {text}"
        assert cluster.recorder.recorded == [("NodeSurveyFindings", message)]
    assert ctx.status["survey"]["nodes"]["n3"] == {
        "ok": False,
        "findings": [{"check": FULL.check, "message": FULL.message}],
    }


@pytest.mark.parametrize("spec", [SKIPPED, FORCED], ids=["refused", "forced"])
async def test_failed_survey_fails_the_plan_unless_forced(cluster: Harvester, spec: Object) -> None:
    ctx, world = await started(cluster, "n1", "n2", spec=spec)
    await world.ended("n1", report("n1", FULL))
    await world.ended("n2", "", code=2, condition="Failed")
    result = await run(ctx)
    failed = "Node n2: node survey failed: R"
    if spec is FORCED:
        assert result == Completed()
        assert failed in cluster.recorder.recorded[0][1]
    else:
        assert isinstance(result, Failed)
        assert f"(grub-environment); spec.force: true skips this check. {failed}" in result.cause
        assert result.log == f"kubectl logs -n {PLACE} job/apply-{PLAN}-on-n2"


@pytest.mark.rule("pipeline: a report of the survey counts if its Pod belongs to this plan's Plan, and stays recorded")
async def test_report_outlives_its_job(cluster: Harvester) -> None:
    ctx, world = await started(cluster, "n1", "n2")
    await world.ended("n1", report("n1", FULL))
    await waiting(ctx)
    await cluster.client.delete(JOBS, f"apply-{PLAN}-on-n1", namespace=PLACE)
    await world.ended("n2", report("n2"))
    await world.complete("n1", "n2")
    found = await run(ctx)
    assert isinstance(found, Failed)
    assert "n1: The kernel arguments have no room" in found.cause


@pytest.mark.rule("pipeline: a report of the survey counts if its Pod belongs to this plan's Plan, and stays recorded")
@pytest.mark.parametrize("of", ["Plan", "Job"])
async def test_report_of_another_owner_does_not_count(cluster: Harvester, of: str) -> None:
    ctx, world = await started(cluster, "n1")
    job = await world.job("n1", condition="Complete", owner="earlier" if of == "Plan" else "")
    state = {"terminated": {"exitCode": 0, "message": report("n1", FULL)}}
    await world.pod(job, phase="Succeeded", state=state, owner="earlier" if of == "Job" else "")
    await waiting(ctx)
    assert ctx.status["survey"] is None


async def test_reports_of_an_earlier_plan_are_replaced(cluster: Harvester) -> None:
    ctx, world = await started(cluster, "n1")
    ctx.status["survey"] = {"plan": "earlier", "nodes": {"n1": {"ok": True}, "left": {"ok": False, "omitted": 1}}}
    assert "done on 0 of 1" in (await waiting(ctx)).message
    await world.ended("n1", report("n1"))
    await world.complete("n1")
    assert await run(ctx) == Completed()
    assert ctx.status["survey"] == {"plan": objects.uid(await world.plan()), "nodes": {"n1": {"ok": True}}}


async def test_findings_of_a_node_that_has_left_do_not_count(cluster: Harvester) -> None:
    ctx, world = await started(cluster, "n1", "n2")
    await world.ended("n1", report("n1"))
    await world.ended("n2", report("n2", FULL))
    await waiting(ctx)
    await cluster.client.delete(NODES, "n2")
    await world.complete("n1")
    assert await run(ctx) == Completed()


async def test_node_that_joins_is_surveyed(cluster: Harvester) -> None:
    ctx, world = await started(cluster, "n1")
    await world.ended("n1", report("n1"))
    await cluster.nodes("n2")
    await world.complete("n1")
    assert "done on 1 of 2 nodes" in (await waiting(ctx)).message
    await world.ended("n2", report("n2"))
    await world.complete("n2")
    assert await run(ctx) == Completed()


UNREADABLE = [
    row("", id="empty"),
    row("Traceback (most recent call last):\n", id="a log"),
    row('{"node":"n1"}', id="without findings"),
    row('{"node":"n1","findings":[', id="cut off"),
    row(failed_survey(node="n1", cause="no API server").encode(), id="a survey that could not be made"),
]


@pytest.mark.rule("pipeline: a node without a readable report is named, and the survey is repeated")
@pytest.mark.parametrize("message", UNREADABLE)
async def test_unreadable_report_is_waited_for(cluster: Harvester, message: str) -> None:
    ctx, world = await started(cluster, "n1", "n2")
    await world.ended("n1", message, at=format_time(virtual_now()))
    await world.ended("n2", report("n2"), at=format_time(virtual_now()))
    await world.complete("n1", "n2")
    found = await waiting(ctx)
    assert found.message == f"Plan {PLACE}/{PLAN}: node survey ended without a readable report of n1"
    [wait] = found.waits
    assert isinstance(wait, UnreadReportWait)
    assert (wait.name, wait.node) == ("n1", "n1")
    assert f"kubectl logs -n {PLACE} job/apply-{PLAN}-on-n1" in remedy_text(wait.remedies)
    assert found.after == pytest.approx(300.0, abs=1.0)
    assert ("The node was not surveyed: no API server" in wait.detail) == ("API server" in message)
    assert await cluster.names(SUC_PLANS) == [PLAN]


@pytest.mark.parametrize("seconds", [29, 31])
async def test_forced_upgrade_goes_on_without_reports(cluster: Harvester, seconds: int) -> None:
    ctx, world = await started(cluster, "n1", "n2", spec=FORCED)
    at = format_time(virtual_now() - timedelta(seconds=seconds))
    await world.ended("n1", "?", at=at)
    await world.ended("n2", report("n2", FULL), at=at)
    await world.complete("n1", "n2")
    found = await run(ctx)
    if seconds < 30:
        assert isinstance(found, Waiting)
    else:
        assert found == Completed()
        [(reason, message)] = cluster.recorder.recorded
        assert reason == "NodeSurveyFindings"
        assert message.endswith("(grub-environment). node survey ended without a readable report of n1")


@pytest.mark.rule("pipeline: a node without a readable report is named, and the survey is repeated")
@pytest.mark.parametrize("is_expired", [False, True], ids=["unreadable", "expired Job"])
async def test_survey_without_a_report_is_repeated(cluster: Harvester, *, is_expired: bool) -> None:
    ctx, world = await started(cluster, "n1", "n2")
    if not is_expired:
        await world.ended("n1", "?", at=format_time(virtual_now() - timedelta(seconds=301)))
    await world.ended("n2", report("n2"))
    await world.complete("n1", "n2")
    ctx.informers.confirm = _confirmed  # type: ignore[assignment,method-assign]
    assert (await waiting(ctx)).message.endswith("without a readable report of n1; it is repeated")
    assert await cluster.names(SUC_PLANS) == []
    assert await cluster.names(JOBS) == []
    assert "done on 0 of 2 nodes" in (await waiting(ctx)).message
    assert suc_node_label(PLAN) not in objects.labels(await cluster.find(NODES, "n2"))
    await world.ended("n1", report("n1"))
    await world.complete("n1", "n2")
    # The new Plan's Pod of the other node has not reported.
    assert "without a readable report of n2" in (await waiting(ctx)).message


async def _confirmed(*_: object) -> bool:
    return True


@pytest.mark.rule("blockers: ImageMissing names the node and the image that the node cannot pull")
@pytest.mark.parametrize("toolkit", [OWN, RECORDED], ids=["own", "harvester"])
async def test_image_that_cannot_be_pulled_is_named(cluster: Harvester, toolkit: Object) -> None:
    ctx, world = await started(cluster, "n1", "n2", toolkit=toolkit)
    await world.unpulled("n1")
    await world.job("n2")
    found = await waiting(ctx)
    missing, other = found.waits
    assert isinstance(missing, UnpulledImageWait)
    assert missing.node == "n1"
    assert missing.name.startswith(f"apply-{PLAN}-on-n1-")
    assert missing.detail.startswith(
        "node n1 lacks image r/toolkit:v1, which all Jobs of the upgrade and its repository"
    )
    assert missing.detail.endswith("its image cannot be pulled (ErrImagePull: no such host)")
    assert "crictl pull r/toolkit:v1" in remedy_text(missing.remedies)
    assert (other.kind, other.node) == (WaitKind.JOB, "n2")


@pytest.mark.parametrize(
    "state",
    [
        row({"waiting": {"reason": "ContainerCreating"}}, id="starts"),
        row({"waiting": {"reason": "CreateContainerError"}}, id="fails otherwise"),
        row({"running": {}}, id="runs"),
    ],
)
async def test_other_states_are_not_missing_images(cluster: Harvester, state: Object) -> None:
    ctx, world = await started(cluster, "n1")
    await world.pod(await world.job("n1"), phase="Pending", state=state)
    assert [wait.kind for wait in (await waiting(ctx)).waits] == [WaitKind.JOB]


async def test_colliding_names_are_surveyed_one_at_a_time(cluster: Harvester) -> None:
    ctx, world = await started(cluster, "node.rack-1", "node.rack-2")
    assert (await world.plan())["spec"]["concurrency"] == 1
    await world.ended("node.rack-1", report("node.rack-1"))
    await waiting(ctx)
    # The next Job has the name of this one.
    stored = objects.status(await cluster.client.get(UPGRADE_PLANS, "up"))
    assert stored["survey"]["nodes"] == {"node.rack-1": {"ok": True}}
