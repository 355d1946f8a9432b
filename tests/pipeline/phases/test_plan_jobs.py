"""Plans of the system-upgrade-controller, which overwrites its own results (suc-observed)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from upgrade_manager.api.node_states import NodeState
from upgrade_manager.kube.clock import loop_time
from upgrade_manager.kube.resources import PODS
from upgrade_manager.kube.store import Store
from upgrade_manager.nodes.job_state import Progress
from upgrade_manager.pipeline.errors import BadCluster
from upgrade_manager.pipeline.phases.base import Completed, Failed, Waiting
from upgrade_manager.pipeline.phases.plan_jobs import (
    NodeStates,
    PlanJob,
    follow_plan,
    plan_condition_message,
    plan_progress,
)

if TYPE_CHECKING:
    from tests.support.harvester import Harvester

STATES = NodeStates(
    running=NodeState.IMAGE_PRELOADING, done=NodeState.IMAGE_PRELOADED, failed=NodeState.IMAGE_PRELOAD_FAILED
)


PRELOAD = {"management.harvesterhci.io/upgrade-component": "image-preload"}
CLEANUP = {"management.harvesterhci.io/upgrade-component": "image-cleanup"}


def plan(status: str = "", reason: str = "", message: str = "") -> dict[str, Any]:
    named = {"name": "up-image-preload", "namespace": "cattle-system", "uid": "p-1", "labels": PRELOAD}
    made: dict[str, Any] = {"metadata": named}
    if status:
        complete = {"type": "Complete", "status": status, "reason": reason, "message": message}
        made["status"] = {"conditions": [complete]}
    return made


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


def stored(*jobs: dict[str, Any]) -> Store:
    store = Store()
    store.replace(jobs, "1")
    return store


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
        pytest.param(plan(), [], "runs", id="no status"),
        pytest.param(plan("False", "Resolved"), [], "runs", id="resolved"),
        pytest.param(plan("False", "SyncJob"), [job()], "runs", id="running"),
        pytest.param(plan("False", "SyncJob"), [], "runs", id="Job deleted"),
        pytest.param(plan("False", "SyncJob"), [job(parallelism=0)], "runs", id="paused Job"),
        pytest.param(plan("Unknown"), [], "runs", id="Unknown"),
        pytest.param(plan("True", "Complete"), [], "complete", id="complete"),
        pytest.param(plan("True", "Complete"), [job("n1", "Complete")], "complete", id="complete, with Jobs"),
        pytest.param(plan("False", "JobFailed", "why"), [], "failed", id="failed, Job deleted"),
        pytest.param(plan("False", "JobFailed"), [], "failed", id="failed without a message"),
        pytest.param(plan("False", "JobFailed", "why"), [job("n1", "Failed")], "failed", id="failed"),
        pytest.param(plan("False", "SyncJob"), [job("n1", "Failed")], "failed", id="failure overwritten by SyncJob"),
        pytest.param(plan("True", "Complete"), [job("n1", "Failed")], "failed", id="failure overwritten by Complete"),
        pytest.param(plan("False", "SyncJob"), [job("n1", "Failed", parallelism=0)], "failed", id="paused Job failed"),
        pytest.param(
            plan("False", "SyncJob"),
            [job("n1", "Failed"), job("n1", created=1)],
            "failed",
            id="failed Job of a node with a newer one",
        ),
        pytest.param(
            plan("False", "SyncJob"),
            [job("", "Failed"), job("", "Complete", created=1)],
            "failed",
            id="the same, without node label",
        ),
        pytest.param(
            plan("False", "SyncJob"),
            [job("n1", "Failed", owner="p-0")],
            "runs",
            id="Job of an earlier Plan of the name",
        ),
        pytest.param(plan("False", "SyncJob"), [job("n1", "Failed", owner="")], "failed", id="Job without an owner"),
        pytest.param(
            plan("False", "SyncJob"),
            [job("n1", "Failed", owner="", labels=CLEANUP)],
            "runs",
            id="Job of another component",
        ),
        pytest.param(plan("False", "SyncJob"), [job("n1", "FailureTarget")], "runs", id="Job with FailureTarget"),
        pytest.param(plan("True", "JobFailed"), [], "complete", id="JobFailed with status True"),
    ],
)
def test_failed_job_counts_before_the_plans_reason(
    raw: dict[str, Any], jobs: list[dict[str, Any]], result: str
) -> None:
    progress = plan_progress(raw, map(PlanJob.of, jobs))
    found = "failed" if progress.failed_job or progress.failure else "complete" if progress.complete else "runs"
    assert found == result


def test_newest_job_of_a_node_counts() -> None:
    progress = plan_progress(
        plan(), map(PlanJob.of, [job("n1", created=2), job("n1", "Complete", created=1), job("n2", "Complete")])
    )
    assert {node: found.state.progress for node, found in progress.jobs.items()} == {
        "n1": Progress.RUNNING,
        "n2": Progress.COMPLETE,
    }


class TestFollow:
    @pytest.mark.rule(
        "pipeline: node states derive from Jobs, Nodes and Secrets",
        "workloads: the node's message shows each failed attempt of a Plan's Job that retries",
    )
    async def test_nodes_and_message_follow_the_jobs(self, cluster: Harvester) -> None:
        await cluster.nodes("n1", "n2", "n3")
        ctx = cluster.context(await cluster.plan())
        jobs = [job("n1", "Complete"), job("n2", failed=1), job("n3", parallelism=0)]
        outcome = await follow_plan(ctx, plan("False", "SyncJob"), stored(*jobs), states=STATES, work="image preload")
        assert outcome == Waiting(
            message="Plan cattle-system/up-image-preload: image preload done on 1 of 3 nodes, running on n2; "
            "n2: attempt 2 of 7; the last attempt failed"
        )
        states = [ctx.status.node_state(node) for node in ("n1", "n2", "n3")]
        assert states == [NodeState.IMAGE_PRELOADED, NodeState.IMAGE_PRELOADING, None]
        assert ctx.status["nodeUpgradeStatuses"]["n2"]["message"] == "1 failed attempt"

    @pytest.mark.rule("api: accepted: Progressing=True, reason is the phase value, message is what the phase waits for")
    @pytest.mark.parametrize(
        ("jobs", "state"),
        [
            pytest.param([], "done on 0 of 5 nodes", id="no Job yet"),
            pytest.param([job("n1", parallelism=0)], "done on 0 of 5 nodes", id="paused Job"),
            pytest.param([job("n1")], "done on 0 of 5 nodes, running on n1", id="one node"),
            pytest.param(
                [job("n3"), job("n1"), job("n2", "Complete")], "done on 1 of 5 nodes, running on n1, n3", id="two nodes"
            ),
            pytest.param(
                [job(f"n{number}") for number in range(1, 6)],
                "done on 0 of 5 nodes, running on n1, n2, n3 and 2 more",
                id="more than a message names",
            ),
            pytest.param(
                [job("n1", failed=1), job("n2", failed=2)],
                "done on 0 of 5 nodes, running on n1, n2; n1: attempt 2 of 3; last failure: disk full",
                id="failed attempt, with message",
            ),
            pytest.param(
                [job("n2", failed=1)],
                "done on 0 of 5 nodes, running on n2; n2: attempt 2 of 3; the last attempt failed",
                id="failed attempt, without message",
            ),
            pytest.param(
                [job("n1", "FailureTarget")],
                "done on 0 of 5 nodes, running on n1; n1: failed (FailureTarget), but its Pod has not terminated; "
                "check whether its node is down",
                id="node is down",
            ),
            pytest.param(
                [job(f"n{number}", "Complete") for number in range(1, 6)], "done on 5 of 5 nodes", id="all nodes done"
            ),
        ],
    )
    async def test_message_names_progress_and_failures(
        self, cluster: Harvester, jobs: list[dict[str, Any]], state: str
    ) -> None:
        await cluster.nodes(*(f"n{number}" for number in range(1, 6)))
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
        ctx = cluster.context(await cluster.plan())
        found = await follow_plan(ctx, plan("False", "SyncJob"), stored(*jobs), states=STATES, work="x")
        assert isinstance(found, Waiting)
        assert found.message == f"Plan cattle-system/up-image-preload: x {state}"

    @pytest.mark.rule("workloads: a Job stuck at FailureTarget on a dead node is reported with the node")
    async def test_job_on_a_node_that_is_down_is_reported(self, cluster: Harvester) -> None:
        await cluster.nodes("n1")
        ctx = cluster.context(await cluster.plan())
        jobs = [job("n1", "FailureTarget")]
        jobs[0]["status"]["conditions"][0]["reason"] = "DeadlineExceeded"
        outcome = await follow_plan(ctx, plan("False", "SyncJob"), stored(*jobs), states=STATES, work="image preload")
        assert isinstance(outcome, Waiting)
        assert "; n1: failed (DeadlineExceeded), but its Pod has not terminated" in outcome.message

    @pytest.mark.rule("workloads: a Plan whose Jobs do not start is reported after a minute with the cause")
    @pytest.mark.parametrize(
        ("created", "after", "said"),
        [
            pytest.param("2026-01-01T00:00:00Z", 60, False, id="new"),
            pytest.param("2025-12-31T23:59:10Z", 10, False, id="50 s old"),
            pytest.param("2025-12-31T23:58:00Z", 60, True, id="two minutes old"),
            pytest.param("2026-02-01T00:00:00Z", 60, False, id="from the future"),
            pytest.param("", 60, False, id="without a time"),
        ],
    )
    async def test_plan_without_jobs_is_reported_after_a_minute(
        self,
        cluster: Harvester,
        created: str,
        after: float,
        said: bool,  # noqa: FBT001  # a table
    ) -> None:
        await cluster.nodes("n1")
        raw = plan("False", "Resolved")
        raw["metadata"]["creationTimestamp"] = created
        ctx = cluster.context(await cluster.plan())
        outcome = await follow_plan(ctx, raw, stored(), states=STATES, work="image preload")
        assert isinstance(outcome, Waiting)
        assert outcome.after == pytest.approx(after, abs=1)
        assert ("kubectl describe -n cattle-system plans.upgrade.cattle.io up-image-preload" in outcome.message) is said

    @pytest.mark.rule("workloads: a Plan whose Jobs do not start is reported after a minute with the cause")
    async def test_plan_without_jobs_is_reported_with_its_condition(self, cluster: Harvester) -> None:
        await cluster.nodes("n1")
        raw = plan("False", "Resolved")
        raw["metadata"]["creationTimestamp"] = "2025-12-31T23:58:00Z"
        raw["status"]["conditions"].append({"type": "Validated", "status": "False", "message": "no such secret"})
        outcome = await follow_plan(
            cluster.context(await cluster.plan()), raw, stored(), states=STATES, work="image preload"
        )
        assert isinstance(outcome, Waiting)
        assert "no Job has started for 60 s (no such secret): see kubectl describe" in outcome.message

    async def test_events_are_listed_once_a_minute(self, cluster: Harvester, monkeypatch: pytest.MonkeyPatch) -> None:
        lists: list[float] = []

        async def warning(*_: Any, **__: Any) -> str:
            lists.append(loop_time())
            return "quota exceeded"

        monkeypatch.setattr("upgrade_manager.pipeline.phases.plan_jobs.latest_warning", warning)
        await cluster.nodes("n1")
        raw = plan("False", "Resolved")
        raw["metadata"]["creationTimestamp"] = "2025-12-31T23:58:00Z"
        ctx = cluster.context(await cluster.plan())
        for _ in range(50):
            outcome = await follow_plan(ctx, raw, stored(), states=STATES, work="image preload")
            await asyncio.sleep(2)
        assert isinstance(outcome, Waiting)
        assert "(quota exceeded)" in outcome.message
        assert len(lists) == 2

    async def test_complete_plan_moves_every_managed_node(self, cluster: Harvester) -> None:
        await cluster.nodes("n1", "n2")
        ctx = cluster.context(await cluster.plan())
        assert await follow_plan(ctx, plan("True", "Complete"), stored(), states=STATES, work="x") == Completed()
        assert [ctx.status.node_state(node) for node in ("n1", "n2")] == [NodeState.IMAGE_PRELOADED] * 2

    @pytest.mark.rule("api: ImagePreload and ImageCleanup fail by the SUC Plan, not by node states")
    async def test_complete_plan_overrides_a_recorded_node_failure(self, cluster: Harvester) -> None:
        await cluster.nodes("n1")
        ctx = cluster.context(await cluster.plan())
        ctx.status.move_node("n1", NodeState.IMAGE_PRELOAD_FAILED)
        raw = plan("False", "SyncJob")
        assert isinstance(await follow_plan(ctx, raw, stored(job("n1")), states=STATES, work="x"), Waiting)
        assert await follow_plan(ctx, plan("True", "Complete"), stored(), states=STATES, work="x") == Completed()

    @pytest.mark.rule("workloads: with no managed node no Plan is created, and a complete one does not count")
    @pytest.mark.parametrize("complete", [True, False])
    async def test_plan_without_nodes_is_not_complete(self, cluster: Harvester, *, complete: bool) -> None:
        ctx = cluster.context(await cluster.plan())
        raw = plan("True", "Complete") if complete else plan()
        with pytest.raises(BadCluster, match=r"no Node carries the label harvesterhci\.io/managed=true any more"):
            await follow_plan(ctx, raw, stored(), states=STATES, work="image preload")

    @pytest.mark.rule("workloads: a failed node fails the phase while other nodes are running")
    @pytest.mark.parametrize(
        ("raw", "jobs", "cause"),
        [
            pytest.param(
                plan("False", "JobFailed", "Job x failed on Node n1"),
                [],
                "image preload failed: Job x failed on Node n1",
                id="message of the Plan",
            ),
            pytest.param(
                plan("False", "SyncJob"),
                [job("n1", "Failed")],
                "image preload failed: Job cattle-system/apply-n1-0 failed",
                id="message of the Job",
            ),
        ],
    )
    async def test_failure_ends_the_phase(
        self, cluster: Harvester, raw: dict[str, Any], jobs: list[dict[str, Any]], cause: str
    ) -> None:
        await cluster.nodes("n1", "n2")
        ctx = cluster.context(await cluster.plan())
        assert await follow_plan(ctx, raw, stored(*jobs), states=STATES, work="image preload") == Failed(cause=cause)

    @pytest.mark.rule("workloads: a failed node fails the phase while other nodes are running")
    async def test_failure_keeps_the_other_nodes_states(self, cluster: Harvester) -> None:
        await cluster.nodes("n1", "n2")
        ctx = cluster.context(await cluster.plan())
        await follow_plan(ctx, plan(), stored(job("n1", "Failed"), job("n2")), states=STATES, work="x")
        states = [ctx.status.node_state(node) for node in ("n1", "n2")]
        assert states == [NodeState.IMAGE_PRELOAD_FAILED, NodeState.IMAGE_PRELOADING]


@pytest.mark.rule("workloads: a Plan whose Jobs do not start is reported after a minute with the cause")
@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        pytest.param([], "", id="no conditions"),
        pytest.param(
            [{"type": "Validated", "status": "False", "message": "no\n secret"}], "no secret", id="not Validated"
        ),
        pytest.param([{"type": "Validated", "status": "True", "message": "fine"}], "", id="Validated"),
        pytest.param(
            [{"type": "LatestResolved", "status": "False", "message": "no version"}], "no version", id="unresolved"
        ),
    ],
)
def test_condition_that_prevents_jobs(conditions: list[dict[str, str]], message: str) -> None:
    assert plan_condition_message({"status": {"conditions": conditions}}) == message
