"""Plans of the system-upgrade-controller, which overwrites its own results (suc-observed)."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.cluster.nodes import store_of
from upgrade_manager.api.keys import suc_node_label
from upgrade_manager.api.node_states import NodeState
from upgrade_manager.api.timestamps import format_time
from upgrade_manager.blockers.wait import WaitKind
from upgrade_manager.facts.job_state import Progress
from upgrade_manager.facts.suc_nodes import UPGRADE_CONTROLLER
from upgrade_manager.kube.resources import DEPLOYMENTS, PODS, SUC_PLANS
from upgrade_manager.pipeline.errors import BadCluster
from upgrade_manager.pipeline.outcome import Completed, Failed, Waiting
from upgrade_manager.pipeline.phases.plan_jobs import (
    NodeStates,
    PlanJob,
    Work,
    follow_plan,
    plan_condition_message,
    plan_progress,
    unlabelled_nodes,
)
from upgrade_manager.resources.suc_plan import image_preload_plan

if TYPE_CHECKING:
    from tests.support.cluster.harvester import Harvester
    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.pipeline.outcome import PhaseResult

row = pytest.param
DONE, RUNNING, FAILED = NodeState.IMAGE_PRELOADED, NodeState.IMAGE_PRELOADING, NodeState.IMAGE_PRELOAD_FAILED
LOADING, REMOVAL = Work("image preload", done="Images loaded"), Work("image cleanup", done="Old images removed")
PRELOAD = {"management.harvesterhci.io/upgrade-component": "image-preload"}
CLEANUP = {"management.harvesterhci.io/upgrade-component": "image-cleanup"}


def plan(status: str = "", reason: str = "", message: str = "", *, created: str = "") -> dict[str, Any]:
    named = {"name": "up-image-preload", "namespace": "cattle-system", "uid": "p-1", "labels": PRELOAD}
    complete = {"type": "Complete", "status": status, "reason": reason, "message": message}
    metadata = named | ({"creationTimestamp": created} if created else {})
    return {"metadata": metadata, **({"status": {"conditions": [complete]}} if status else {})}


def job(
    node: str = "n1",
    condition: str = "",
    *,
    parallelism: int = 1,
    owner: str = "p-1",
    created: int = 0,
    failed: int = 0,
    labels: dict[str, str] = PRELOAD,
) -> dict[str, Any]:
    return {
        "metadata": {
            "name": f"apply-{node}-{created}",
            "namespace": "cattle-system",
            "labels": {**labels, **({"upgrade.cattle.io/node": node} if node else {})},
            "ownerReferences": [{"uid": owner, "controller": True}] if owner else [],
            "creationTimestamp": f"2026-01-01T00:00:0{created}Z",
        },
        "spec": {"parallelism": parallelism},
        "status": {"failed": failed, "conditions": [{"type": condition, "status": "True"}] if condition else []},
    }


SYNC, COMPLETE = plan("False", "SyncJob"), plan("True", "Complete")
#: Its Jobs have not started for two minutes.
OLD = plan("False", "Resolved", created="2025-12-31T23:58:00Z")
NOT_VALID = {"type": "Validated", "status": "False", "message": "no such secret"}


@pytest.mark.rule(
    "api: ImagePreload and ImageCleanup fail by the SUC Plan, not by node states",
    "pipeline: ImagePreload completes when the Plan's Complete condition is True",
    "workloads: a Plan is complete when its condition Complete is True",
    "workloads: a Plan has failed when one of its Jobs has Failed=True",
    "workloads: a Plan's Jobs are found by the labels of plan and component",
    "workloads: a Plan has failed when Complete is False with reason JobFailed",
    "workloads: a failed Job takes precedence over the Plan's condition",
    "workloads: a deleted Job of the controller is not a failure",
)
@pytest.mark.parametrize(
    ("raw", "jobs", "result"),
    [
        row(plan(), [], "runs", id="no status"),
        row(plan("False", "Resolved"), [], "runs", id="resolved"),
        row(SYNC, [job()], "runs", id="running"),
        row(SYNC, [], "runs", id="Job deleted"),
        row(SYNC, [job(parallelism=0)], "runs", id="paused Job"),
        row(plan("Unknown"), [], "runs", id="Unknown"),
        row(COMPLETE, [], "complete", id="complete"),
        row(COMPLETE, [job("n1", "Complete")], "complete", id="complete, with Jobs"),
        row(plan("False", "JobFailed", "why"), [], "failed", id="failed, Job deleted"),
        row(plan("False", "JobFailed"), [], "failed", id="failed without a message"),
        row(plan("False", "JobFailed", "why"), [job("n1", "Failed")], "failed", id="failed"),
        row(SYNC, [job("n1", "Failed")], "failed", id="failure overwritten by SyncJob"),
        row(COMPLETE, [job("n1", "Failed")], "failed", id="failure overwritten by Complete"),
        row(SYNC, [job("n1", "Failed", parallelism=0)], "failed", id="paused Job failed"),
        row(SYNC, [job("n1", "Failed"), job("n1", created=1)], "failed", id="failed Job of a node with a newer one"),
        row(SYNC, [job("", "Failed"), job("", "Complete", created=1)], "failed", id="the same, without node label"),
        row(SYNC, [job("n1", "Failed", owner="p-0")], "runs", id="Job of an earlier Plan of the name"),
        row(SYNC, [job("n1", "Failed", owner="")], "failed", id="Job without an owner"),
        row(SYNC, [job("n1", "Failed", owner="", labels=CLEANUP)], "runs", id="Job of another component"),
        row(SYNC, [job("n1", "FailureTarget")], "runs", id="Job with FailureTarget"),
        row(plan("True", "JobFailed"), [], "complete", id="JobFailed with status True"),
    ],
)
def test_failed_job_counts_before_the_plans_reason(
    raw: dict[str, Any], jobs: list[dict[str, Any]], result: str
) -> None:
    progress = plan_progress(raw, map(PlanJob.of, jobs))
    found = "failed" if progress.failed or progress.failure else "complete" if progress.complete else "runs"
    assert found == result


def test_newest_job_of_a_node_counts() -> None:
    jobs = [job("n1", created=2), job("n1", "Complete", created=1), job("n2", "Complete")]
    found = plan_progress(plan(), map(PlanJob.of, jobs)).jobs
    assert found["n1"].state.progress is Progress.RUNNING
    assert found["n2"].state.progress is Progress.COMPLETE
    assert len(found) == 2


@pytest.fixture
async def ctx(cluster: Harvester) -> ReconcileContext:
    """Return the context of an upgrade of five nodes, which an earlier run of the Plan has labelled."""
    await cluster.nodes(*ALL, **{suc_node_label("up-image-preload"): "hash"})
    return cluster.context(await cluster.plan())


async def follow(ctx: ReconcileContext, raw: dict[str, Any], *jobs: dict[str, Any]) -> PhaseResult:
    states = NodeStates(running=RUNNING, done=DONE, failed=FAILED)
    return await follow_plan(ctx, raw, store_of(jobs), states=states, work=LOADING)


async def waiting(ctx: ReconcileContext, raw: dict[str, Any], *jobs: dict[str, Any]) -> Waiting:
    found = await follow(ctx, raw, *jobs)
    assert isinstance(found, Waiting)
    return found


def states_of(ctx: ReconcileContext, *nodes: str) -> list[NodeState | None]:
    return [ctx.status.node_state(node) for node in nodes]


@pytest.mark.rule(
    "pipeline: node states derive from Jobs, Nodes and Secrets",
    "workloads: the node's message shows each failed attempt of a Plan's Job that retries",
)
async def test_nodes_and_message_follow_the_jobs(ctx: ReconcileContext) -> None:
    found = await follow(ctx, SYNC, job("n1", "Complete"), job("n2", failed=1), job("n3", parallelism=0))
    assert isinstance(found, Waiting)
    assert found.message == (
        "Images loaded on 1 of 5 nodes, waiting for n2; n2: attempt 2 of 7; the last attempt failed"
    )
    assert states_of(ctx, "n1", "n2", "n3") == [DONE, RUNNING, None]
    assert ctx.status["nodeUpgradeStatuses"]["n2"]["message"] == "1 failed attempt"


ALL = ("n1", "n2", "n3", "n4", "n5")
LAST_FAILURE = "n1: attempt 2 of 3; last failure: disk full"
NODE_DOWN = "n1: failed (FailureTarget), but its Pod does not end; check that its node is up"


@pytest.mark.rule(
    "api: accepted: Progressing=True, reason is the phase value, message is what the phase waits for",
    "workloads: a Job stuck at FailureTarget on a dead node is reported with the node",
)
@pytest.mark.parametrize(
    ("jobs", "done", "state"),
    [
        row([], 0, "", id="no Job yet"),
        row([job("n1", parallelism=0)], 0, "", id="paused Job"),
        row([job("n1")], 0, ", waiting for n1", id="one node"),
        row([job("n3"), job("n1"), job("n2", "Complete")], 1, ", waiting for n1, n3", id="two nodes"),
        row([job(name) for name in ALL], 0, ", waiting for n1, n2, n3 and 2 more", id="more than a message names"),
        row([job("n1", failed=1), job("n2", failed=2)], 0, f", waiting for n1, n2; {LAST_FAILURE}", id="last failure"),
        row([job("n2", failed=1)], 0, ", waiting for n2; n2: attempt 2 of 3; the last attempt failed", id="no message"),
        row([job("n1", "FailureTarget")], 0, f", waiting for n1; {NODE_DOWN}", id="node is down"),
        row([job(name, "Complete") for name in ALL], 5, "", id="all nodes done"),
    ],
)
async def test_message_names_progress_and_failures(
    cluster: Harvester, ctx: ReconcileContext, jobs: list[dict[str, Any]], done: int, state: str
) -> None:
    ended = {"terminated": {"exitCode": 1, "message": "disk full"}}
    labels = {"batch.kubernetes.io/job-name": "apply-n1-0"}
    metadata = {"name": "apply-n1-0-x", "namespace": "cattle-system", "labels": labels}
    status = {"phase": "Failed", "containerStatuses": [{"name": "upgrade", "state": ended}]}
    bare = {"metadata": metadata, "spec": {"containers": [{"name": "upgrade", "image": "x"}]}}
    await cluster.put(PODS, bare, status=status)
    for one in jobs:
        one["spec"]["backoffLimit"] = 2
        for condition in one["status"]["conditions"]:
            condition["reason"] = condition["type"]
    message = (await waiting(ctx, SYNC, *jobs)).message
    assert message == f"Images loaded on {done} of 5 nodes{state}"


@pytest.mark.rule("workloads: a Plan whose Jobs do not start is reported after a minute with the cause")
@pytest.mark.parametrize(
    ("conditions", "words"), [row([], "", id="silent"), row([NOT_VALID], "no such secret", id="its condition")]
)
async def test_plan_without_jobs_is_waited_for(ctx: ReconcileContext, conditions: list[Any], words: str) -> None:
    found = await waiting(ctx, OLD | {"status": {"conditions": [*OLD["status"]["conditions"], *conditions]}})
    assert (found.detail, found.after) == ("", None)
    [wait] = found.waits
    assert (wait.kind, wait.name, wait.detail) == (WaitKind.PLAN, "up-image-preload", words)
    assert format_time(wait.since) == OLD["metadata"]["creationTimestamp"]


async def test_plan_without_a_time_is_waited_for_from_now_on(ctx: ReconcileContext) -> None:
    (wait,) = (await waiting(ctx, plan("False", "Resolved"))).waits
    assert (wait.name, wait.since) == ("up-image-preload", ctx.now())


async def test_complete_plan_moves_every_managed_node(ctx: ReconcileContext) -> None:
    assert await follow(ctx, COMPLETE) == Completed()
    assert states_of(ctx, *ALL) == [DONE] * 5


@pytest.mark.rule("api: ImagePreload and ImageCleanup fail by the SUC Plan, not by node states")
async def test_complete_plan_overrides_a_recorded_node_failure(ctx: ReconcileContext) -> None:
    ctx.status.move_node("n1", FAILED)
    await waiting(ctx, SYNC, job("n1"))
    assert await follow(ctx, COMPLETE) == Completed()


@pytest.mark.rule("workloads: with no managed node no Plan is created, and a complete one does not count")
@pytest.mark.parametrize("raw", [COMPLETE, plan()], ids=["complete", "running"])
async def test_plan_without_nodes_is_not_complete(cluster: Harvester, raw: dict[str, Any]) -> None:
    ctx = cluster.context(await cluster.plan())
    with pytest.raises(BadCluster, match=r"All nodes lack the label harvesterhci\.io/managed=true\. Add it"):
        await follow(ctx, raw)


PLAN_FAILED = Failed(cause="image preload failed: Job x failed on Node n1")
JOB_FAILED = Failed(
    cause="Node n1: image preload failed", log="kubectl logs -n cattle-system job/apply-n1-0", node="n1"
)


@pytest.mark.rule("workloads: a failed node fails the phase while other nodes are running")
@pytest.mark.parametrize(
    ("raw", "jobs", "failed"),
    [
        row(plan("False", "JobFailed", "Job x failed on Node n1"), [], PLAN_FAILED, id="the Plan"),
        row(SYNC, [job("n1", "Failed"), job("n2")], JOB_FAILED, id="the Job"),
    ],
)
async def test_failure_ends_the_phase_with_the_message_of(
    ctx: ReconcileContext, raw: dict[str, Any], jobs: list[dict[str, Any]], failed: Failed
) -> None:
    assert await follow(ctx, raw, *jobs) == failed
    assert states_of(ctx, "n1", "n2") == ([FAILED, RUNNING] if jobs else [None, None])


@pytest.mark.rule("workloads: a Plan whose Jobs do not start is reported after a minute with the cause")
@pytest.mark.parametrize(
    ("type_", "status", "message"),
    [
        row("Validated", "False", "no secret", id="not Validated"),
        row("Validated", "True", "", id="Validated"),
        row("LatestResolved", "False", "no secret", id="unresolved"),
        row("Complete", "False", "", id="another condition"),
    ],
)
def test_condition_that_prevents_jobs(type_: str, status: str, message: str) -> None:
    condition = {"type": type_, "status": status, "message": "no\n secret"}
    assert plan_condition_message({"status": {"conditions": [condition]}}) == message
    assert plan_condition_message({"status": {"conditions": []}}) == ""


@pytest.mark.parametrize(("reason", "words"), [("Error", "Error"), ("", "LatestResolved is False")])
def test_condition_without_a_message_prevents_jobs_too(reason: str, words: str) -> None:
    condition = {"type": "LatestResolved", "status": "False", "reason": reason}
    assert plan_condition_message({"status": {"conditions": [condition]}}) == words


async def test_node_that_joined_gets_no_entry_after_the_nodes_upgrade(ctx: ReconcileContext) -> None:
    states = NodeStates(running=RUNNING, done=DONE, failed=FAILED, adds_nodes=False)
    for node in ALL[1:]:
        ctx.status.move_node(node, RUNNING)
    jobs = [job("n1", "Complete"), job("n2", "Complete")]
    await follow_plan(ctx, SYNC, store_of(jobs), states=states, work=REMOVAL)
    assert states_of(ctx, "n1", "n2", "n3") == [None, DONE, RUNNING]
    assert await follow_plan(ctx, COMPLETE, store_of(jobs), states=states, work=REMOVAL) == Completed()
    assert states_of(ctx, *ALL) == [None, DONE, DONE, DONE, DONE]


def ended(node: str, *, created: int, at: int) -> dict[str, Any]:
    """Return a Job that completed that second."""
    found = job(node, "Complete", created=created)
    found["status"]["conditions"][0]["lastTransitionTime"] = f"2026-01-01T00:00:{at:02}Z"
    return found


@pytest.mark.parametrize(
    ("jobs", "kind", "since"),
    [
        row([], WaitKind.PLAN, "2025-12-31T23:58:00Z", id="no Job yet"),
        row([job("n1", created=3, parallelism=0)], WaitKind.PLAN, "2025-12-31T23:58:00Z", id="paused Job"),
        row([job("n1", created=3)], WaitKind.JOB, "2026-01-01T00:00:03Z", id="running Job"),
        row([ended("n1", created=3, at=9)], WaitKind.PLAN, "2026-01-01T00:00:09Z", id="the last Job has ended"),
        row(
            [ended("n1", created=3, at=5), job("n2", created=4)], WaitKind.JOB, "2026-01-01T00:00:04Z", id="one of two"
        ),
    ],
)
async def test_it_waits_for_the_jobs_or_for_the_next_one(
    ctx: ReconcileContext, jobs: list[dict[str, Any]], kind: WaitKind, since: str
) -> None:
    (wait,) = (await waiting(ctx, OLD, *jobs)).waits
    assert (wait.kind, format_time(wait.since)) == (kind, since)


@pytest.mark.parametrize(
    ("applying", "jobs", "found"),
    [
        row(["n1"], [job("n1", "Complete"), job("n2", "Complete")], ["n1"], id="selected again"),
        row(["n1", "n2"], [job("n1", "Complete"), job("n2")], [], id="another node runs"),
        row([], [job("n1", "Complete")], [], id="not selected yet"),
        row(["n2"], [job("n2", "Complete")], [], id="label is there"),
        row(["n1"], [job("n2", "Complete")], [], id="no Job yet"),
    ],
)
def test_unlabelled_nodes_have_a_complete_job(
    applying: list[str], jobs: list[dict[str, Any]], found: list[str]
) -> None:
    raw = plan("False", "SyncJob")
    raw["status"]["applying"] = applying
    label = {suc_node_label("up-image-preload"): "hash"}
    nodes = [{"metadata": {"name": name, "labels": label if name == "n2" else {}}} for name in ("n1", "n2")]
    assert unlabelled_nodes(raw, plan_progress(raw, map(PlanJob.of, jobs)), nodes) == found


async def put_controller(cluster: Harvester, *, available: int, since: str) -> None:
    condition = {"type": "Available", "status": "True", "lastTransitionTime": since}
    manifest = {
        "metadata": {"name": UPGRADE_CONTROLLER, "namespace": "cattle-system"},
        "spec": {
            "selector": {"matchLabels": {"app": "suc"}},
            "template": {"metadata": {"labels": {"app": "suc"}}, "spec": {"containers": [{"name": "suc"}]}},
        },
    }
    conditions = [condition] if since else []
    await cluster.put(DEPLOYMENTS, manifest, status={"availableReplicas": available, "conditions": conditions})


BEFORE = "2025-12-01T00:00:00Z"


@pytest.mark.rule("pipeline: a node that loses its SUC Plan's label while other nodes run gets its Job again")
@pytest.mark.parametrize(
    ("ago", "since", "available", "after"),
    [
        row(1, BEFORE, 1, 31, id="the controller has time to label the nodes"),
        row(40, BEFORE, 1, None, id="labels stay away"),
        row(40, BEFORE, 0, 32, id="the controller does not run"),
        row(40, "", 1, None, id="time of its start is unknown"),
        row(40, "now", 1, 32, id="the controller has just started"),
        row(40, "no Deployment", 0, 32, id="the controller is absent"),
    ],
)
async def test_plan_of_unlabelled_nodes_is_removed(
    cluster: Harvester, ago: int, since: str, available: int, after: float | None
) -> None:
    ctx = cluster.context(await cluster.plan())
    await cluster.nodes("n1", "n2")
    if since != "no Deployment":
        since = format_time(ctx.now()) if since == "now" else since
        await put_controller(cluster, available=available, since=since)
    raw = await cluster.put(SUC_PLANS, image_preload_plan(ctx.owner, ctx.plan_settings, concurrency=2))
    raw |= {"status": {"conditions": [], "applying": ["n1", "n2"]}}
    jobs = [job(name, "Complete", owner=raw["metadata"]["uid"]) for name in ("n1", "n2")]
    for one in jobs:
        time = format_time(ctx.now() - timedelta(seconds=ago))
        one["status"]["conditions"][0]["lastTransitionTime"] = time
    found = await waiting(ctx, raw, *jobs)
    assert found.after == (None if after is None else pytest.approx(after, abs=1))
    exists = await cluster.client.find(SUC_PLANS, raw["metadata"]["name"], namespace="cattle-system") is not None
    assert exists == (after is not None)
    repeated = "" if exists else "; it is repeated, because n1, n2 lost the Plan's label"
    assert found.message.endswith(f"Images loaded on 2 of 2 nodes{repeated}")
