"""What is said of a Job that has not ended: state by state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from upgrade_manager.kube.resources import EVENTS, PODS
from upgrade_manager.pipeline.diagnostics import account, not_started
from upgrade_manager.pipeline.phases.base import Waiting

if TYPE_CHECKING:
    from tests.support.harvester import Harvester

PLACE, NAME = "harvester-system", "up-x"
WAITING = f"waiting for Job {PLACE}/{NAME}: "
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


def warning(message: str) -> dict[str, Any]:
    about = {"apiVersion": "batch/v1", "kind": "Job", "name": NAME, "namespace": PLACE, "uid": "j-1"}
    metadata = {"name": "e", "namespace": PLACE}
    return {"metadata": metadata, "involvedObject": about, "type": "Warning", "reason": "Failed", "message": message}


SLOW = pod(
    phase="Pending",
    conditions=[{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}],
)
FAILURE_TARGET = {"type": "FailureTarget", "status": "True", "reason": "DeadlineExceeded"}


@pytest.mark.rule("api: accepted: Progressing=True, reason is the phase value, message is what the phase waits for")
@pytest.mark.parametrize(
    ("raw", "others", "message", "detail"),
    [
        pytest.param(job(created=NOW), [], "attempt 1 of 3", "no Pod yet", id="just created"),
        pytest.param(job(created=NOW, active=1), [], "attempt 1 of 3", "its Pod has not started yet", id="with a Pod"),
        pytest.param(job(active=1, ready=1, startTime=NOW), [], "attempt 1 of 3", f"running since {NOW}", id="it runs"),
        pytest.param(job(active=1, ready=1), [], "attempt 1 of 3", "running", id="it runs, since nobody knows when"),
        pytest.param(
            job(created=NOW, failed=1), [], "attempt 2 of 3, the last one failed", "no Pod yet", id="it is tried again"
        ),
        pytest.param(
            job(active=1, ready=1, failed=2),
            [failed_pod("no space left")],
            "attempt 3 of 3, the last one ended with: no space left",
            "running",
            id="its last attempt, with the words of the one before",
        ),
        pytest.param(
            job(created=NOW, failed=3),
            [],
            "attempt 3 of 3, the last one failed",
            "no Pod yet",
            id="its verdict is due: there is no attempt beyond the last",
        ),
        pytest.param(
            job(created=NOW, spec={"backoffLimit": None}), [], "attempt 1 of 7", "no Pod yet", id="Kubernetes' limit"
        ),
        pytest.param(
            job(spec={"suspend": True}), [], "it is suspended; set its spec.suspend to false", "", id="suspended"
        ),
        pytest.param(
            job(conditions=[FAILURE_TARGET]),
            [],
            "failed (DeadlineExceeded), but its Pod has not terminated; check whether its node is down",
            "",
            id="on a dead node",
        ),
        pytest.param(job(), [], "attempt 1 of 3", "no Pod yet", id="no Pod for a minute, and nobody knows why"),
        pytest.param(
            job(),
            [warning("serviceaccount\n not found")],
            "attempt 1 of 3",
            "no Pod yet (serviceaccount not found)",
            id="no Pod for a minute, and its events know why",
        ),
        pytest.param(
            job(active=1),
            [SLOW, warning("of the past")],
            "attempt 1 of 3",
            "Pod up-x-1 is Pending (Unschedulable: 0/3 nodes)",
            id="a Pod that does not start for a minute",
        ),
        pytest.param(
            job(active=1), [], "attempt 1 of 3", "its Pod has not started yet", id="a Pod that nobody can find"
        ),
    ],
)
async def test_a_job_is_told_with_its_state(
    cluster: Harvester, raw: dict[str, Any], others: list[dict[str, Any]], message: str, detail: str
) -> None:
    for one in others:
        status = one.get("status")
        bare = {key: value for key, value in one.items() if key != "status"}
        await cluster.put(PODS if status else EVENTS, bare, status=status)
    said = await account(cluster.context(await cluster.plan()), raw)
    assert (said.message, said.detail) == (WAITING + message, detail)


@pytest.mark.parametrize(
    ("raw", "after"),
    [
        pytest.param(job(created=NOW), 60, id="a new one gets its minute"),
        pytest.param(job(created="2025-12-31T23:59:30Z"), 30, id="or what is left of it"),
        pytest.param(job(), 60, id="then it is asked about once a minute"),
        pytest.param(job(ready=1), None, id="one that runs is watched, and that is enough"),
    ],
)
async def test_it_is_looked_at_again_where_nothing_that_is_watched_would_tell(
    cluster: Harvester, raw: dict[str, Any], after: float | None
) -> None:
    said = await account(cluster.context(await cluster.plan()), raw)
    assert said.after == (after and pytest.approx(after, abs=1))


async def test_however_often_it_is_looked_at_its_pods_and_events_are_asked_for_once(
    cluster: Harvester, monkeypatch: pytest.MonkeyPatch
) -> None:
    ctx = cluster.context(await cluster.plan())
    first = await account(ctx, job(failed=1))
    asked: list[Any] = []
    monkeypatch.setattr(cluster.client, "list", lambda *_, **__: asked.append(1))
    for _ in range(3):
        assert await account(ctx, job(failed=1)) == first
    assert asked == []


def test_one_that_was_just_created_is_told_as_it_will_be_seen() -> None:
    assert not_started("Job a/b", limit=2) == Waiting(
        message="waiting for Job a/b: attempt 1 of 3", detail="no Pod yet"
    )
