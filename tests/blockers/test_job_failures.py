"""Termination messages of a Job's Pods."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from unittest.mock import AsyncMock

import pytest

from tests.support.cluster.harvester import Harvester
from upgrade_manager.blockers.job_failures import LIST_TIMEOUT, job_failure, job_failure_message, last_failure
from upgrade_manager.facts.job_state import JobState, Progress
from upgrade_manager.kube.clock import loop_time
from upgrade_manager.kube.errors import Forbidden, KubeError, Throttled, Transient
from upgrade_manager.kube.resources import PODS
from upgrade_manager.runtime.ttl_cache import TTLCache

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

PLACE = "harvester-system"
JOB = JobState(namespace=PLACE, name="up-x", uid="u", progress=Progress.FAILED, reason="BackoffLimitExceeded")
FAILED = "Job harvester-system/up-x failed"
CAUSE = f"{FAILED}: BackoffLimitExceeded"
LOG = ". Log: kubectl logs -n harvester-system job/up-x"


@pytest.fixture
async def cluster() -> AsyncIterator[Harvester]:
    async with asyncio.TaskGroup() as group:
        harvester = Harvester(group)
        await harvester.install()
        yield harvester


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
    expected = FAILED + message if message else CAUSE
    assert await job_failure_message(cluster.client, JOB) == expected + LOG


@pytest.mark.rule("nodes: of several failed Pods the latest one's termination message is used")
@pytest.mark.parametrize("first", ["p1", "p2"])
async def test_latest_pods_termination_message_is_used(cluster: Harvester, first: str) -> None:
    second = {"p1": "p2", "p2": "p1"}[first]
    await failed_pod(cluster, first, terminated(1, "the first attempt"))
    await asyncio.sleep(10)
    await failed_pod(cluster, second, terminated(1, "the last attempt"))
    assert await job_failure_message(cluster.client, JOB) == f"{FAILED}: the last attempt{LOG}"


@pytest.mark.rule("nodes: CAUSE ends with the last line of the failed Pod's termination message")
async def test_failure_message_without_pods_is_the_cause(cluster: Harvester) -> None:
    assert await job_failure_message(cluster.client, JOB) == CAUSE + LOG


async def test_last_failure_is_listed_once_for_each_attempt(
    cluster: Harvester, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, retried = TTLCache(ttl=60), replace(JOB, progress=Progress.RUNNING, failed_attempts=1)
    await failed_pod(cluster, "p1", terminated(1, "disk full"))
    assert await last_failure(cluster.client, cache, retried) == "disk full"
    lists = AsyncMock(side_effect=Transient("down"))
    monkeypatch.setattr(cluster.client, "list", lists)
    assert await last_failure(cluster.client, cache, retried) == "disk full"
    assert await last_failure(cluster.client, cache, replace(retried, failed_attempts=2)) == ""
    assert lists.await_count == 1


@pytest.mark.parametrize("error", [Transient("down"), Forbidden("no"), Throttled("later", retry_after=1.0)], ids=str)
async def test_failed_list_counts_as_empty(
    cluster: Harvester, monkeypatch: pytest.MonkeyPatch, error: KubeError
) -> None:
    await failed_pod(cluster, "failed", terminated(1, "bad"))
    monkeypatch.setattr(cluster.client, "list", AsyncMock(side_effect=error))
    assert await job_failure_message(cluster.client, JOB) == CAUSE + LOG


async def test_slow_list_counts_as_empty(cluster: Harvester, monkeypatch: pytest.MonkeyPatch) -> None:
    await failed_pod(cluster, "failed", terminated(1, "bad"))

    async def hang(*_: Any, **__: Any) -> None:
        await asyncio.sleep(3600)

    monkeypatch.setattr(cluster.client, "list", hang)
    began = loop_time()
    assert await job_failure_message(cluster.client, JOB) == CAUSE + LOG
    assert loop_time() - began == pytest.approx(LIST_TIMEOUT)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        pytest.param({"failed_attempts": 3}, "failed 3 times: bad", id="attempts"),
        pytest.param({"failed_attempts": 1}, "failed: bad", id="one attempt"),
        pytest.param({"reason": "DeadlineExceeded"}, "failed: DeadlineExceeded: bad", id="a reason that says more"),
    ],
)
async def test_failure_counts_attempts_and_keeps_other_reasons(
    cluster: Harvester, state: dict[str, Any], words: str
) -> None:
    await failed_pod(cluster, "p1", terminated(1, "bad"))
    failure = await job_failure(cluster.client, replace(JOB, **state))
    assert failure.of("OS upgrade") == f"OS upgrade {words}{LOG}"
