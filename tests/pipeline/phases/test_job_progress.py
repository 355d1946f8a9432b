"""The progress of a Job that has not finished."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.managers.phase_results import shown
from upgrade_manager.api.keys import Component
from upgrade_manager.api.timestamps import clock_of
from upgrade_manager.blockers.known_wait import SuspendedJobWait
from upgrade_manager.blockers.wait import FailingJobWait, JobWait
from upgrade_manager.kube.resources import PODS
from upgrade_manager.pipeline.outcome import Waiting
from upgrade_manager.pipeline.phases.job_progress import job_progress, new_job_progress

if TYPE_CHECKING:
    from tests.support.cluster.harvester import Harvester
    from upgrade_manager.blockers.wait import Wait

row = pytest.param
PLACE, NAME = "harvester-system", "up-x"
JOB = f"Job {PLACE}/{NAME}"
NOW, LONG_AGO = "2026-01-01T00:00:00Z", "2025-12-31T23:00:00Z"
BARE = {"name": "up-x-1", "namespace": PLACE, "labels": {"batch.kubernetes.io/job-name": NAME}}


def job(*, created: str = LONG_AGO, spec: dict[str, Any] | None = None, **status: Any) -> dict[str, Any]:
    return {
        "kind": "Job",
        "metadata": {"name": NAME, "namespace": PLACE, "uid": "j-1", "creationTimestamp": created},
        "spec": {"backoffLimit": 2, **(spec or {})},
        "status": status,
    }


def pod(**status: Any) -> dict[str, Any]:
    return {"metadata": BARE, "spec": {"containers": [{"name": "apply", "image": "x"}]}, "status": status}


def failed_pod(words: str) -> dict[str, Any]:
    ended = {"terminated": {"exitCode": 1, "message": f"more\n{words}\n"}}
    return pod(phase="Failed", containerStatuses=[{"name": "apply", "state": ended}])


DISK_FULL = failed_pod("disk full")
FINISHED = "Pod finished; waiting for the Job to be marked complete"
FIRST, LAST = ": attempt 1 of 3", ": attempt 3 of 3"
NO_POD, NOT_STARTED = "waiting for its Pod", "its Pod is starting"
NODE_DOWN = ": failed (DeadlineExceeded), but its Pod does not end; check that its node is up"
SUSPENDED = (
    ": it is suspended, so that none of its Pods runs. Resume it: "
    f"""kubectl patch job -n {PLACE} {NAME} -p '{{"spec":{{"suspend":false}}}}'"""
)
COMPLETE = {"type": "Complete", "status": "True"}
FAILURE_TARGET = {"type": "FailureTarget", "status": "True", "reason": "DeadlineExceeded"}


@pytest.mark.rule("api: accepted: Progressing=True, reason is the phase value, message is what the phase waits for")
@pytest.mark.parametrize(
    ("raw", "others", "message", "detail"),
    [
        row(job(created=NOW), [], FIRST, NO_POD, id="just created"),
        row(job(created=NOW, active=1), [], FIRST, NOT_STARTED, id="with a Pod"),
        row(job(active=1, ready=1, startTime=NOW), [], FIRST, f"running since {clock_of(NOW)}", id="runs"),
        row(job(active=1, ready=1), [], FIRST, "running", id="runs, without startTime"),
        row(job(succeeded=1), [], FIRST, FINISHED, id="Pod finished"),
        row(job(uncountedTerminatedPods={"succeeded": ["p"]}), [], FIRST, FINISHED, id="Pod finished, not counted"),
        row(job(), [pod(phase="Pending")], FIRST, NO_POD, id="not started for long, which is a blocker's part"),
        row(job(created=NOW, uncountedTerminatedPods={"failed": ["p"]}), [], FIRST, "its Pod has failed", id="fails"),
        row(job(created=NOW, failed=1), [], ": attempt 2 of 3; the last attempt failed", NO_POD, id="retried"),
        row(job(active=1, ready=1, failed=2), [DISK_FULL], f"{LAST}; last failure: disk full", "running", id="last"),
        row(job(created=NOW, failed=3), [], f"{LAST}; the last attempt failed", NO_POD, id="all attempts failed"),
        row(job(created=NOW, spec={"backoffLimit": None}), [], ": attempt 1 of 7", NO_POD, id="default limit"),
        row(job(spec={"suspend": True}), [], SUSPENDED, "", id="suspended"),
        row(job(conditions=[FAILURE_TARGET]), [], NODE_DOWN, "", id="node is down"),
    ],
)
async def test_progress_of_a_job(
    cluster: Harvester, raw: dict[str, Any], others: list[dict[str, Any]], message: str, detail: str
) -> None:
    for one in others:
        await cluster.put(PODS, {key: one[key] for key in ("metadata", "spec")}, status=one["status"])
    found = await job_progress(cluster.context(await cluster.plan()), raw, work=Component.CLUSTER_UPGRADE)
    assert shown(found) == Waiting(waits=(), message=JOB + message, detail=detail)


async def test_pods_are_listed_once_a_minute(cluster: Harvester, monkeypatch: pytest.MonkeyPatch) -> None:
    ctx = cluster.context(await cluster.plan())
    first = await job_progress(ctx, job(failed=1), work=Component.CLUSTER_UPGRADE)
    lists: list[Any] = []
    monkeypatch.setattr(cluster.client, "list", lambda *_, **__: lists.append(1))
    for _ in range(3):
        assert await job_progress(ctx, job(failed=1), work=Component.CLUSTER_UPGRADE) == first
    assert lists == []


async def test_new_job_is_reported_like_an_observed_one(cluster: Harvester) -> None:
    ctx = cluster.context(await cluster.plan())
    found = new_job_progress(ctx, NAME, backoff_limit=2, work=Component.CLUSTER_UPGRADE)
    assert shown(found) == Waiting(waits=(), message=f"{JOB}: attempt 1 of 3", detail=NO_POD)
    (wait,) = found.waits
    assert isinstance(wait, JobWait)
    assert (wait.namespace, wait.name, wait.since, wait.is_running) == (PLACE, NAME, ctx.now(), False)


WAITS = [
    row(job(), JobWait, id="runs"),
    row(job(spec={"suspend": True}), SuspendedJobWait, id="suspended"),
    row(job(conditions=[FAILURE_TARGET]), FailingJobWait, id="fails"),
    row(job(conditions=[COMPLETE]), JobWait, id="complete, its result is not known yet"),
]


@pytest.mark.rule("blockers: a phase that waits names what for")
@pytest.mark.parametrize(("raw", "kind"), WAITS)
async def test_job_that_is_followed_is_a_wait(cluster: Harvester, raw: dict[str, Any], kind: type[Wait]) -> None:
    found = await job_progress(cluster.context(await cluster.plan()), raw, work=Component.CHECKSUMS)
    (wait,) = found.waits
    assert (type(wait), wait.name) == (kind, NAME)
