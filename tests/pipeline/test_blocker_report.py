"""The waits of a phase become status, condition and events."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from hack.virtual_time import virtual_now
from tests.support.cluster.harvester import RECORDED, Harvester
from tests.support.managers.histories import UnwrittenHistory
from upgrade_manager.api.blockers import MAX_BLOCKERS, MAX_TEXT, Blocker, BlockerReason
from upgrade_manager.api.remedy import Remedy
from upgrade_manager.blockers.wait import JobWait
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import PODS, UPGRADE_PLANS
from upgrade_manager.pipeline import blocker_report
from upgrade_manager.pipeline.context import ReconcileContext
from upgrade_manager.pipeline.events import REPEAT_WINDOW, PlanEvents
from upgrade_manager.pipeline.informers import PlanInformers
from upgrade_manager.pipeline.status import StatusPatch

PLACE = "harvester-system"
UNPULLABLE = {"reason": "ImagePullBackOff", "message": "x" * 500}
TOOLKIT = "rancher/harvester-upgrade-toolkit:v1.7.0"
ORIGIN = "; toolkit image: repository by default, tag v1.7.0 "
GUESS = ORIGIN + "is a guess, the manager's version: create a plan with spec.upgrade"


def blocker(name: str = "p", *, reason: BlockerReason = BlockerReason.POD_PENDING) -> Blocker:
    since = virtual_now() - timedelta(minutes=5)
    return Blocker(
        reason=reason, kind="Pod", namespace="ns", name=name, message="M", remedies=(Remedy("R"),), since=since
    )


def container(*, waiting: Object) -> Object:
    return {"name": "c", "image": "i", "imageID": "", "ready": False, "restartCount": 0, "state": {"waiting": waiting}}


def job_wait(*, age: float) -> JobWait:
    since = virtual_now() - timedelta(seconds=age)
    pods = "batch.kubernetes.io/job-name=j"
    return JobWait(namespace=PLACE, name="j", since=since, stepped=since, pods=pods)


async def pending_pod(cluster: Harvester) -> None:
    labels = {"batch.kubernetes.io/job-name": "j"}
    spec = {"containers": [{"name": "c", "image": "i"}]}
    await cluster.put(PODS, {"metadata": {"name": "j-1", "namespace": PLACE, "labels": labels}, "spec": spec})
    await asyncio.sleep(60)


async def begun(cluster: Harvester, informers: PlanInformers) -> ReconcileContext:
    """Return a new plan."""
    await cluster.plan(status={"currentPhase": "ClusterUpgrading"})
    return await again(cluster, informers)


async def again(cluster: Harvester, informers: PlanInformers) -> ReconcileContext:
    """Return the plan as a new process reads it."""
    ctx = cluster.context(await cluster.client.get(UPGRADE_PLANS, "up"))
    return replace(ctx, informers=informers)


async def reported(ctx: ReconcileContext, *waits: JobWait) -> float | None:
    """Report until the objects are listed."""
    for _ in range(10):
        after = blocker_report.report(ctx, waits)
        await asyncio.sleep(0.5)
        if after is None or after > 1:
            break
    return after


@pytest.mark.rule("blockers: what takes too long is in status.blockers, Stalled and one Warning event")
async def test_overdue_wait_is_reported_until_it_is_over(cluster: Harvester, informers: PlanInformers) -> None:
    await pending_pod(cluster)
    ctx = await begun(cluster, informers)
    assert await reported(ctx, job_wait(age=61)) == REPEAT_WINDOW.total_seconds()
    await ctx.persist()
    plan = await cluster.client.get(UPGRADE_PLANS, "up")
    (entry,) = objects.status(plan)["blockers"]
    assert (entry["kind"], entry["name"], entry["reason"]) == ("Pod", "j-1", "PodPending")
    stalled = objects.condition(plan, "Stalled")
    assert (stalled["status"], stalled["reason"]) == ("True", "PodPending")
    assert stalled["message"] == f"{entry['message']}. {entry['remedy']}"
    assert cluster.recorder.recorded == [("PodPending", f"{entry['message']}. {entry['remedy']}")]
    ctx = await again(cluster, informers)
    blocker_report.clear(ctx)
    await ctx.persist()
    plan = await cluster.client.get(UPGRADE_PLANS, "up")
    assert "blockers" not in objects.status(plan)
    assert not objects.condition(plan, "Stalled")
    assert cluster.recorder.recorded[1:] == [("BlockerCleared", "Pod harvester-system/j-1: PodPending is cleared")]


@pytest.mark.rule(
    "workloads: a guess is an admission warning, and named where the image cannot be pulled",
    "workloads: the blocker of a toolkit image that cannot be pulled names the source of repository and tag",
)
@pytest.mark.parametrize(
    ("recorded", "state", "image", "ending"),
    [
        pytest.param({"guessed": True}, UNPULLABLE, TOOLKIT, GUESS, id="guessed"),
        pytest.param({}, UNPULLABLE, f"docker.io/{TOOLKIT}", ORIGIN + "by spec.version", id="not guessed"),
        pytest.param({"guessed": True}, UNPULLABLE, "cdi/importer", ")", id="another image"),
        pytest.param({"guessed": True}, {"reason": "CreateContainerError"}, TOOLKIT, ")", id="another reason"),
    ],
)
async def test_unpullable_toolkit_image_names_its_sources(
    cluster: Harvester, informers: PlanInformers, recorded: Object, state: Object, image: str, ending: str
) -> None:
    await pending_pod(cluster)
    await cluster.finish(PODS, "j-1", PLACE, {"containerStatuses": [{**container(waiting=state), "image": image}]})
    await cluster.plan(status={"currentPhase": "ClusterUpgrading"}, toolkit={**RECORDED, **recorded})
    for _ in range(2):
        # The second time as a new process, which knows it from the status.
        ctx = await again(cluster, informers)
        await reported(ctx, job_wait(age=61))
        await ctx.persist()
        [entry] = objects.status(await cluster.client.get(UPGRADE_PLANS, "up"))["blockers"]
        assert entry["message"].endswith(ending)
        assert entry["message"].count("toolkit image: ") == ending.count("toolkit image: ")
        assert len(entry["message"]) <= MAX_TEXT


async def test_next_deadline_is_returned(cluster: Harvester, informers: PlanInformers) -> None:
    ctx = await begun(cluster, informers)
    assert blocker_report.report(ctx, [job_wait(age=20), job_wait(age=50)]) == pytest.approx(10, abs=1)
    assert (ctx.status.difference(), ctx.informers.specs) == ({}, frozenset())


@pytest.mark.rule("blockers: since survives a restart, and the event is not repeated")
async def test_restart_keeps_the_time_and_repeats_no_event(cluster: Harvester, informers: PlanInformers) -> None:
    await pending_pod(cluster)
    ctx = await begun(cluster, informers)
    await reported(ctx, job_wait(age=61))
    await ctx.persist()
    before = ctx.status["blockers"]
    await informers.stop()
    await asyncio.sleep(30)
    ctx = await again(cluster, informers)
    ctx = replace(ctx, events=PlanEvents(cluster.recorder, now=virtual_now, history=UnwrittenHistory()))
    blocker_report.report(ctx, [job_wait(age=91)])
    assert ctx.status["blockers"] == before
    await reported(ctx, job_wait(age=91))
    assert ctx.status["blockers"] == before
    assert len(cluster.recorder.recorded) == 1
    # The first process may have died before it sent the event.
    assert cluster.recorder.known == cluster.recorder.recorded


@pytest.mark.rule("blockers: a lasting blocker is counted in its event")
async def test_lasting_blocker_is_counted(cluster: Harvester) -> None:
    plan: Object = await cluster.plan()
    events = PlanEvents(cluster.recorder, now=virtual_now, history=UnwrittenHistory())
    events.blocker(plan, blocker(), is_known=False)
    for _ in range(3):
        events.blocker(plan, blocker(), is_known=True)
        await asyncio.sleep(REPEAT_WINDOW.total_seconds() / 2)
    assert cluster.recorder.recorded == [("PodPending", "M. R")] * 2
    assert cluster.recorder.names == ["", ""]


async def test_stalled_shows_the_first_blocker_and_counts_the_others() -> None:
    status = StatusPatch({"metadata": {}, "status": {"estimatedCompletion": "2026-01-01T00:00:00Z"}}, now=virtual_now)
    status.blocked([blocker(str(number)) for number in range(MAX_BLOCKERS + 5)])
    assert len(status["blockers"]) == MAX_BLOCKERS
    assert status["estimatedCompletion"] is None
    (stalled,) = status["conditions"]
    assert (stalled["type"], stalled["status"], stalled["reason"]) == ("Stalled", "True", "PodPending")
    assert stalled["message"] == f"M. {MAX_BLOCKERS + 4} more in status.blockers. R"


async def test_stalled_that_is_set_again_keeps_its_time() -> None:
    status = StatusPatch({"metadata": {}, "status": {}}, now=virtual_now)
    status.blocked([blocker()])
    (stalled,) = status["conditions"]
    stored = {"conditions": [{**stalled, "lastTransitionTime": "2025-01-01T00:00:00Z"}]}
    status = StatusPatch({"metadata": {}, "status": stored}, now=virtual_now)
    status.blocked([])
    status.blocked([blocker()])
    assert status["conditions"] == stored["conditions"]


def test_plan_without_blockers_is_not_changed() -> None:
    status = StatusPatch({"metadata": {}, "status": {}}, now=virtual_now)
    status.blocked([])
    assert status.difference() == {}


@pytest.mark.parametrize(
    ("message", "waiting", "shown"),
    [
        pytest.param("Pod p: it does not start", "Job j runs", "Pod p: it does not start", id="more than the wait"),
        pytest.param("Deployment d does not exist", "Job j runs", "Deployment d does not exist", id="no colon"),
        pytest.param("Rancher is silent (1 of 3)", "n waits (1 of 3)", "Rancher is silent", id="the same count"),
        pytest.param("Node n: it is NotReady", "n: it is NotReady", "", id="as the wait has it"),
    ],
)
async def test_progressing_shows_what_the_first_blocker_adds(
    cluster: Harvester, informers: PlanInformers, message: str, waiting: str, shown: str
) -> None:
    ctx = await begun(cluster, informers)
    assert blocker_report.first_message(ctx, waiting) == ""
    ctx.status.blocked([replace(blocker(), message=message)])
    assert blocker_report.first_message(ctx, waiting) == shown


async def test_blockers_beyond_the_status_send_no_events(cluster: Harvester, informers: PlanInformers) -> None:
    ctx = await begun(cluster, informers)
    found = [blocker(str(number), reason=BlockerReason.WRITE_REFUSED) for number in range(MAX_BLOCKERS + 5)]
    for _ in range(2):
        blocker_report.report_refused(ctx, found)
    assert len(cluster.recorder.recorded) == MAX_BLOCKERS


@pytest.mark.rule("blockers: an error that lasts is explained by the waits beside it")
async def test_error_with_an_overdue_wait_is_explained(cluster: Harvester, informers: PlanInformers) -> None:
    await pending_pod(cluster)
    ctx = await begun(cluster, informers)
    for found in ([], [blocker(reason=BlockerReason.WRITE_REFUSED)]):
        # The first report starts the informer of the Pods.
        blocker_report.report(ctx, [job_wait(age=61)], keeps_refused=True)
        blocker_report.report_refused(ctx, found)
        await asyncio.sleep(0.5)
    assert [entry["reason"] for entry in ctx.status["blockers"]] == ["WriteRefused", "PodPending"]
