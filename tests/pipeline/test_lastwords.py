from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from upgrade_manager.kube.client import Client
from upgrade_manager.kube.errors import Forbidden, Transient
from upgrade_manager.kube.resources import PODS
from upgrade_manager.nodes.job_state import JobState, Progress
from upgrade_manager.pipeline.lastwords import with_last_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.support.harvester import Harvester
    from upgrade_manager.kube.errors import KubeError

JOB = JobState(namespace="harvester-system", name="up-x", progress=Progress.FAILED, reason="BackoffLimitExceeded")
CAUSE = "Job harvester-system/up-x failed: BackoffLimitExceeded"


def ended(code: int, message: str | None) -> dict[str, Any]:
    return {"name": "apply", "state": {"terminated": {"exitCode": code, "message": message}}}


async def pod(cluster: Harvester, name: str, *statuses: dict[str, Any], job: str = "up-x") -> None:
    labels = {"batch.kubernetes.io/job-name": job}
    manifest = {
        "metadata": {"name": name, "namespace": "harvester-system", "labels": labels},
        "spec": {"containers": [{"name": "apply", "image": "x"}]},
    }
    await cluster.put(PODS, manifest, status={"phase": "Failed", "containerStatuses": list(statuses)})


@pytest.mark.rule("nodes: CAUSE ends with the last line of the failed Pod's termination message")
@pytest.mark.parametrize(
    ("statuses", "words"),
    [
        pytest.param([], "", id="no container has run"),
        pytest.param([ended(1, "disk\nno space left on device\n")], ": no space left on device", id="the last line"),
        pytest.param([ended(1, "one\n\n  \n")], ": one", id="that says something"),
        pytest.param([ended(1, "")], "", id="nothing was said"),
        pytest.param([ended(1, None)], "", id="nor anything null"),
        pytest.param([ended(0, "all is well")], "", id="a container that succeeded has no say"),
        pytest.param([ended(0, "fine"), ended(1, "bad")], ": bad", id="among others the one that failed"),
        pytest.param([{"name": "apply", "state": {"running": {}}}], "", id="one that runs"),
        pytest.param([{"name": "apply"}], "", id="one without a state"),
    ],
)
async def test_the_pods_last_line_is_added_to_the_jobs_cause(
    cluster: Harvester, statuses: Sequence[dict[str, Any]], words: str
) -> None:
    await pod(cluster, "p1", *statuses)
    await pod(cluster, "other", ended(1, "someone else's"), job="up-y")
    assert await with_last_words(cluster.client, JOB) == CAUSE + words


@pytest.mark.rule("nodes: of several failed Pods the latest one's termination message is used")
@pytest.mark.parametrize("first", ["p1", "p2"])
async def test_of_several_pods_the_one_that_began_last_has_the_last_word(cluster: Harvester, first: str) -> None:
    """A Job's attempts come one after the other; their names tell nothing of the order."""
    second = {"p1": "p2", "p2": "p1"}[first]
    await pod(cluster, first, ended(1, "the first attempt"))
    await asyncio.sleep(10)
    await pod(cluster, second, ended(1, "the last attempt"))
    assert await with_last_words(cluster.client, JOB) == f"{CAUSE}: the last attempt"


@pytest.mark.rule("nodes: CAUSE ends with the last line of the failed Pod's termination message")
async def test_without_pods_the_cause_stands_alone(cluster: Harvester) -> None:
    assert await with_last_words(cluster.client, JOB) == CAUSE


@pytest.mark.parametrize("error", [Transient("down"), Forbidden("no")], ids=["down", "forbidden"])
async def test_pods_that_cannot_be_read_do_not_hide_the_cause(
    cluster: Harvester, monkeypatch: pytest.MonkeyPatch, error: KubeError
) -> None:
    async def refuse(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(Client, "list", refuse)
    assert await with_last_words(cluster.client, JOB) == CAUSE
