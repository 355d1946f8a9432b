"""The Job of the cluster upgrade of a deleted plan: what it may write is given back after its end."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import reduce
from typing import TYPE_CHECKING, Any

import pytest

from hack.virtual_time import virtual_now
from tests.pipeline.ending.test_orphaned_jobs import ACTIVE, COMPLETE, FAILED, FAILURE_TARGET
from tests.pipeline.ending.test_passing_on import deleted
from tests.pipeline.settings.test_rancher import local, stored
from tests.pipeline.settings.test_update_methods import HARVESTERS, begun, chart, installed, values
from upgrade_manager.api.keys import ANNOTATION_LEDGER, HARVESTER_SYSTEM
from upgrade_manager.api.timestamps import format_time
from upgrade_manager.blockers.wait import JobWait
from upgrade_manager.facts import update_methods as facts
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import JOBS, PODS
from upgrade_manager.pipeline import conclusion
from upgrade_manager.pipeline.ending import component_job
from upgrade_manager.pipeline.settings import left_entries
from upgrade_manager.resources.jobs import cluster_upgrade_job

if TYPE_CHECKING:
    from tests.support.cluster.harvester import Harvester
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.context import ReconcileContext

NAME = "up-cluster-upgrade"
DELETE = f"kubectl delete job -n {HARVESTER_SYSTEM} {NAME}"


def _nested(*names: str, value: Any) -> str:
    """Return a merge patch of one field."""
    return json.dumps(reduce(lambda inner, name: {name: inner}, reversed(names), value), separators=(",", ":"))


_CHART = "patch managedcharts.management.cattle.io -n fleet-local harvester --type merge -p"
_KUBEVIRT = "patch kubevirts.kubevirt.io -n harvester-system kubevirt --type merge -p"
#: Commands that give chart, exception and KubeVirt back by hand.
COMMANDS = [
    f"{_CHART} '{_nested('spec', 'values', 'kubevirt', 'spec', *facts.PATH, value=None)}'",
    f"{_CHART} '{_nested('spec', 'diff', 'comparePatches', value=None)}'",
    f"{_KUBEVIRT} '{_nested('spec', *facts.PATH, value=['LiveMigrate'])}'",
]
LOST = {**ACTIVE, "conditions": [FAILURE_TARGET]}


async def interrupted(cluster: Harvester, *, age: float = 1.0) -> ReconcileContext:
    """Delete a plan whose chart has the empty list, so many seconds ago."""
    await installed(cluster)
    ctx = deleted(await begun(cluster, toolkit=HARVESTERS))
    objects.metadata(ctx.raw)["deletionTimestamp"] = format_time(virtual_now() - timedelta(seconds=age))
    ctx.status["currentPhase"] = "ClusterUpgrading"
    return ctx


async def with_job(cluster: Harvester, ctx: ReconcileContext, status: Object | None, **changes: Any) -> None:
    job = cluster_upgrade_job(ctx.owner, ctx.job_settings)
    job["spec"] |= changes
    await cluster.put(JOBS, job, status=status)


async def with_pod(cluster: Harvester, *, phase: str = "Running") -> None:
    """Create the Job's Pod."""
    metadata: Object = {"name": "pod", "namespace": HARVESTER_SYSTEM, "labels": {"batch.kubernetes.io/job-name": NAME}}
    spec = {"nodeName": "n1", "containers": [{"name": "apply", "image": "x"}]}
    await cluster.put(PODS, {"metadata": metadata, "spec": spec}, status={"phase": phase})


async def not_persisted(_: ReconcileContext) -> None:
    """Leave the status unwritten."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A Job and its Pod, and what they keep from being given back."""

    status: Object | None = None
    changes: dict[str, Any] = field(default_factory=dict)
    has_job: bool = True
    pod: dict[str, Any] | None = None
    #: The beginning of what may still write; empty if nothing may.
    writer: str = ""
    stays: bool = True


CASES = [
    pytest.param(Case(status=ACTIVE, writer=f"Job {HARVESTER_SYSTEM}/{NAME} (attempt 1 of 3)"), id="running"),
    pytest.param(Case(status=None, stays=False), id="without a Pod"),
    pytest.param(Case(status={"failed": 1}, stays=False), id="between two attempts"),
    pytest.param(Case(status=COMPLETE), id="complete"),
    pytest.param(Case(status=FAILED), id="failed"),
    pytest.param(Case(status=None, changes={"suspend": True}), id="suspended"),
    pytest.param(Case(has_job=False), id="no Job"),
    pytest.param(Case(has_job=False, pod={"phase": "Succeeded"}), id="Pod that has ended"),
    pytest.param(Case(has_job=False, pod={}, writer="Pod harvester-system/pod, which"), id="Pod of a deleted Job"),
    pytest.param(Case(status=LOST, pod={}, writer="Pod harvester-system/pod, which"), id="failing"),
]


@pytest.mark.rule("pipeline: a deletion gives KubeVirt's update methods back once the cluster upgrade's Job has ended")
@pytest.mark.parametrize("case", CASES)
async def test_jobs_and_pods_keep_the_methods(cluster: Harvester, case: Case) -> None:
    ctx = await interrupted(cluster)
    if case.has_job:
        await with_job(cluster, ctx, case.status, **case.changes)
    if case.pod is not None:
        await with_pod(cluster, **case.pod)
    for _ in range(2):
        left = await conclusion.settle(ctx, persist=not_persisted)
        assert (left is not None) == bool(case.writer)
    assert objects.spec(await chart(cluster))["values"] == values([] if case.writer else None)
    assert bool(ctx.status["ledger"]) == bool(case.writer)
    message = f"The deletion waits for at most an hour, because {case.writer}" if case.writer else ""
    assert objects.condition({"status": ctx.status.fields}, "Progressing").get("message", "").startswith(message)
    assert await cluster.names(JOBS, HARVESTER_SYSTEM) == [NAME] * (case.has_job and case.stays)


async def test_wait_for_a_job_names_its_end(cluster: Harvester) -> None:
    ctx = await interrupted(cluster)
    await with_job(cluster, ctx, ACTIVE)
    writer = await component_job.find(ctx)
    assert writer is not None
    (wait,) = writer.waits
    assert isinstance(wait, JobWait)
    assert (wait.way_out, wait.expected) == (DELETE, 3600)
    assert component_job.wait(ctx, writer) == component_job.JOB_RETRY
    message = objects.condition({"status": ctx.status.fields}, "Progressing")["message"]
    assert message.endswith(f"write KubeVirt's update methods. It runs to its end; if it hangs, delete it: {DELETE}")


@pytest.mark.parametrize(
    ("overdue", "runs"), [(0.0, True), (61.0, False)], ids=["in its grace period", "of a dead node"]
)
async def test_pod_that_should_have_ended_is_awaited_for_a_minute(
    cluster: Harvester, *, overdue: float, runs: bool
) -> None:
    ctx = await interrupted(cluster)
    await with_pod(cluster)
    await cluster.client.delete(PODS, "pod", namespace=HARVESTER_SYSTEM)
    (pod,) = (await cluster.client.list(PODS)).items
    ended = datetime.fromisoformat(objects.metadata(pod)["deletionTimestamp"])
    ctx.now = lambda: ended + timedelta(seconds=overdue)
    assert (await component_job.find(ctx) is not None) == runs


@pytest.mark.parametrize(
    ("status", "is_deleted"),
    [
        pytest.param({"ledger": []}, True, id="nothing to give back"),
        pytest.param({"currentPhase": "Failed"}, True, id="failed"),
        pytest.param({"currentPhase": "NodeUpgrading"}, True, id="after the Job"),
        pytest.param({}, False, id="not deleted"),
    ],
)
async def test_other_ends_do_not_look_for_the_job(
    cluster: Harvester, status: dict[str, Any], *, is_deleted: bool
) -> None:
    ctx = await interrupted(cluster)
    await with_job(cluster, ctx, None)
    if not is_deleted:
        del objects.metadata(ctx.raw)["deletionTimestamp"]
    for key, value in status.items():
        ctx.status[key] = value
    assert await component_job.find(ctx) is None
    assert list(component_job.owed(ctx)) == []
    assert await cluster.names(JOBS, HARVESTER_SYSTEM) == [NAME]


@pytest.mark.rule("pipeline: a deletion waits for the Job of the cluster upgrade, for at most an hour")
async def test_methods_pass_to_the_next_plan_after_an_hour(cluster: Harvester) -> None:
    await local(cluster)
    ctx = await interrupted(cluster, age=3600)
    await with_job(cluster, ctx, ACTIVE)
    entries = ctx.status["ledger"]
    assert await conclusion.settle(ctx, persist=not_persisted) is None
    assert objects.spec(await chart(cluster))["values"] == values([])
    found = await stored(cluster)
    assert json.loads(objects.annotations_of(found)[ANNOTATION_LEDGER]) == entries
    texts = [text for reason, text in cluster.recorder.recorded if reason == "UpgradeOwes"]
    assert [text.rpartition(": kubectl ")[2] for text in texts] == [DELETE.removeprefix("kubectl "), *COMMANDS]
    following = cluster.context(await cluster.plan("next"))
    for _ in range(2):
        await left_entries.take_methods(following, await stored(cluster))
    assert following.status["ledger"] == entries
    assert ANNOTATION_LEDGER not in objects.annotations_of(await stored(cluster))
