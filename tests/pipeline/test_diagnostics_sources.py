"""Termination messages, Pods that are not ready, and Warning events."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from unittest.mock import AsyncMock

import pytest

from upgrade_manager.facts.job_state import JobState, Progress
from upgrade_manager.kube.clock import loop_time
from upgrade_manager.kube.errors import Forbidden, KubeError, Throttled, Transient
from upgrade_manager.kube.resources import EVENTS, PODS
from upgrade_manager.pipeline.diagnostics import (
    LIST_TIMEOUT,
    describe_pod,
    job_failure_message,
    latest_warning,
    pod_not_ready_reason,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.support.cluster.harvester import Harvester
    from upgrade_manager.kube.objects import Object

PLACE = "harvester-system"
JOB = JobState(namespace=PLACE, name="up-x", uid="u", progress=Progress.FAILED, reason="BackoffLimitExceeded")
CAUSE = "Job harvester-system/up-x failed: BackoffLimitExceeded"
LOG = "; log: kubectl logs -n harvester-system job/up-x"
SUBJECT = {"apiVersion": "upgrade.cattle.io/v1", "kind": "Plan", "name": "up-x", "namespace": PLACE, "uid": "p-1"}
PLAN: Object = {"metadata": {"name": "up-x", "namespace": PLACE, "uid": "p-1"}}


async def put_pod(cluster: Harvester, name: str, labels: dict[str, str], **status: Any) -> None:
    metadata = {"name": name, "namespace": PLACE, "labels": labels}
    manifest = {"metadata": metadata, "spec": {"containers": [{"name": "apply", "image": "x"}]}}
    await cluster.put(PODS, manifest, status=status)


def terminated(code: int, message: str | None) -> dict[str, Any]:
    return {"name": "apply", "state": {"terminated": {"exitCode": code, "message": message}}}


async def failed_pod(cluster: Harvester, name: str, *statuses: dict[str, Any], job: str = "up-x") -> None:
    labels = {"batch.kubernetes.io/job-name": job}
    await put_pod(cluster, name, labels, phase="Failed", containerStatuses=list(statuses))


@pytest.mark.rule("nodes: CAUSE ends with the last line of the failed Pod's termination message")
@pytest.mark.parametrize(
    ("statuses", "message"),
    [
        pytest.param([], "", id="no container has run"),
        pytest.param([terminated(1, "disk\nno space left on device\n")], ": no space left on device", id="last line"),
        pytest.param([terminated(1, "one\n\n  \n")], ": one", id="last line with text"),
        pytest.param([terminated(1, "")], "", id="empty"),
        pytest.param([terminated(1, None)], "", id="null"),
        pytest.param([terminated(0, "all is well")], "", id="a container that succeeded"),
        pytest.param([terminated(0, "fine"), terminated(1, "bad")], ": bad", id="one of two failed"),
        pytest.param([{"name": "apply", "state": {"running": {}}}], "", id="running"),
        pytest.param([{"name": "apply"}], "", id="no state"),
    ],
)
async def test_failure_message_ends_with_the_termination_message(
    cluster: Harvester, statuses: Sequence[dict[str, Any]], message: str
) -> None:
    await failed_pod(cluster, "p1", *statuses)
    await failed_pod(cluster, "other", terminated(1, "another Job's"), job="up-y")
    assert await job_failure_message(cluster.client, JOB) == CAUSE + message + LOG


@pytest.mark.rule("nodes: of several failed Pods the latest one's termination message is used")
@pytest.mark.parametrize("first", ["p1", "p2"])
async def test_latest_pods_termination_message_is_used(cluster: Harvester, first: str) -> None:
    second = {"p1": "p2", "p2": "p1"}[first]
    await failed_pod(cluster, first, terminated(1, "the first attempt"))
    await asyncio.sleep(10)
    await failed_pod(cluster, second, terminated(1, "the last attempt"))
    assert await job_failure_message(cluster.client, JOB) == f"{CAUSE}: the last attempt{LOG}"


@pytest.mark.rule("nodes: CAUSE ends with the last line of the failed Pod's termination message")
async def test_failure_message_without_pods_is_the_cause(cluster: Harvester) -> None:
    assert await job_failure_message(cluster.client, JOB) == CAUSE + LOG


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    return {"name": "apply", "state": {"waiting": {"reason": reason, "message": message}}}


row = pytest.param
UNSCHEDULABLE = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}]
NO_IMAGE, INVALID = waiting("ImagePullBackOff", "no such image"), waiting("CreateContainerError")
CRASH = waiting("CrashLoopBackOff", "back-off 10s")
PENDING, RUNNING = {"phase": "Pending"}, {"phase": "Running"}
NOT_READY = "running, but not ready"


@pytest.mark.parametrize(
    ("status", "described"),
    [
        row({}, "Pending", id="no status"),
        row({**PENDING, "conditions": UNSCHEDULABLE}, "Pending (Unschedulable: 0/3 nodes)", id="unschedulable"),
        row({**PENDING, "containerStatuses": [NO_IMAGE]}, "Pending (ImagePullBackOff: no such image)", id="image"),
        row({**PENDING, "initContainerStatuses": [INVALID]}, "Pending (CreateContainerError)", id="init container"),
        row({**PENDING, "containerStatuses": [waiting("ContainerCreating")]}, "Pending", id="starting"),
        row(
            {**RUNNING, "containerStatuses": [CRASH]}, f"{NOT_READY} (CrashLoopBackOff: back-off 10s)", id="crash loop"
        ),
        row(RUNNING, NOT_READY, id="not ready"),
        row({"phase": "Unknown", "reason": "NodeLost", "message": "lost"}, "Unknown (NodeLost: lost)", id="node lost"),
        row({"phase": None, "containerStatuses": [{"state": None}], "conditions": None}, "Pending", id="nulls"),
    ],
)
def test_pod_is_described_with_phase_and_reason(status: dict[str, Any], described: str) -> None:
    assert describe_pod({"metadata": {"name": "p"}, "status": status}) == f"Pod p is {described}"


async def not_ready(cluster: Harvester) -> str:
    return await pod_not_ready_reason(cluster.client, namespace=PLACE, label_selector="app=x")


async def test_pod_with_a_reason_is_described_first(cluster: Harvester) -> None:
    await put_pod(cluster, "a", {"app": "x"}, phase="Pending")
    await put_pod(cluster, "b", {"app": "x"}, phase="Pending", conditions=UNSCHEDULABLE)
    assert (await not_ready(cluster)).startswith("Pod b is Pending (Unschedulable")


async def test_finished_ready_and_unselected_pods_are_ignored(cluster: Harvester) -> None:
    await put_pod(cluster, "a", {"app": "x"}, phase="Failed", reason="Evicted")
    await put_pod(cluster, "b", {"app": "x"}, phase="Running", conditions=[{"type": "Ready", "status": "True"}])
    await put_pod(cluster, "c", {"app": "y"}, phase="Pending", conditions=UNSCHEDULABLE)
    assert await not_ready(cluster) == ""
    await put_pod(cluster, "d", {"app": "x"}, phase="Pending")
    assert await not_ready(cluster) == "Pod d is Pending"


def event(message: str, *, at: int = 0, type_: str = "Warning", **subject: str) -> dict[str, Any]:
    return {
        "involvedObject": {**SUBJECT, **subject},
        "type": type_,
        "reason": "Why",
        "message": message,
        "lastTimestamp": f"2026-01-01T00:00:0{at}Z",
    }


@pytest.mark.rule("workloads: a Plan whose Jobs do not start is reported after a minute with the cause")
@pytest.mark.parametrize(
    ("events", "message"),
    [
        pytest.param([], "", id="none"),
        pytest.param([event("old"), event("new\n", at=2), event("mid", at=1)], "new", id="the latest"),
        pytest.param([event("fine", type_="Normal")], "", id="a Normal event"),
        pytest.param([event("else", name="other")], "", id="of another object"),
        pytest.param([event("past", uid="p-0")], "", id="of an earlier object of the name"),
        pytest.param([event("another kind's", kind="Job")], "", id="of another kind"),
    ],
)
async def test_latest_warning(cluster: Harvester, events: list[dict[str, Any]], message: str) -> None:
    of_job = event("a job's", apiVersion="batch/v1", kind="Job", uid="j-1")
    for number, one in enumerate([*events, of_job]):
        await cluster.put(EVENTS, {**one, "metadata": {"name": f"e{number}", "namespace": PLACE}})
    assert await latest_warning(cluster.client, PLAN, kind="Plan") == message
    job = {"metadata": {"name": "up-x", "namespace": PLACE, "uid": "j-1"}}
    assert await latest_warning(cluster.client, job, kind="Job") == "a job's"


async def everything(cluster: Harvester) -> tuple[str, str, str]:
    warning = await latest_warning(cluster.client, PLAN, kind="Plan")
    return await job_failure_message(cluster.client, JOB), await not_ready(cluster), warning


async def put_everything(cluster: Harvester) -> None:
    await failed_pod(cluster, "failed", terminated(1, "bad"))
    await put_pod(cluster, "pending", {"app": "x"}, phase="Pending")
    await cluster.put(EVENTS, {**event("warned"), "metadata": {"name": "e", "namespace": PLACE}})
    assert await everything(cluster) == (f"{CAUSE}: bad{LOG}", "Pod pending is Pending", "warned")


@pytest.mark.parametrize("error", [Transient("down"), Forbidden("no"), Throttled("later", retry_after=1.0)], ids=str)
async def test_failed_list_counts_as_empty(
    cluster: Harvester, monkeypatch: pytest.MonkeyPatch, error: KubeError
) -> None:
    await put_everything(cluster)
    monkeypatch.setattr(cluster.client, "list", AsyncMock(side_effect=error))
    assert await everything(cluster) == (CAUSE + LOG, "", "")


async def test_slow_list_counts_as_empty(cluster: Harvester, monkeypatch: pytest.MonkeyPatch) -> None:
    await put_everything(cluster)

    async def hang(*_: Any, **__: Any) -> None:
        await asyncio.sleep(3600)

    monkeypatch.setattr(cluster.client, "list", hang)
    began = loop_time()
    assert await everything(cluster) == (CAUSE + LOG, "", "")
    assert loop_time() - began == pytest.approx(3 * LIST_TIMEOUT)
