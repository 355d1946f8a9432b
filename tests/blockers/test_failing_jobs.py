"""A Job that has failed, while its Pods do not terminate: each finder alone, and an upgrade."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from upgrade_manager.api.keys import JobType
from upgrade_manager.blockers import failing_jobs
from upgrade_manager.blockers.finder import find_blockers
from upgrade_manager.blockers.jobs import job_wait
from upgrade_manager.blockers.wait import FailingJobWait
from upgrade_manager.facts.job_state import JobState
from upgrade_manager.facts.node_obstacles import check_kubelet

if TYPE_CHECKING:
    from tests.blockers.conftest import FakeView

LOG = "kubectl -n kube-system logs -l component=kube-controller-manager --tail=20 --prefix"
FORCE = "kubectl delete pod -n ns p --force --grace-period=0"
row = pytest.param


def failing(view: FakeView) -> FailingJobWait:
    """Return the wait for a Job that failed 90 s ago."""
    target = {
        "type": "FailureTarget",
        "status": "True",
        "reason": "DeadlineExceeded",
        "lastTransitionTime": view.time(90),
    }
    metadata = {"name": "j", "namespace": "ns", "creationTimestamp": view.time(900)}
    (wait,) = job_wait(
        JobState.of({"metadata": metadata, "status": {"conditions": [target]}}), work=JobType.POST_DRAIN, node="n1"
    )
    assert isinstance(wait, FailingJobWait)
    return wait


def pod(*, phase: str = "Running", node: str = "n1", job: str = "j") -> dict[str, Any]:
    labels = {"batch.kubernetes.io/job-name": job}
    return {
        "metadata": {"name": "p", "namespace": "ns", "labels": labels},
        "spec": {"nodeName": node} if node else {},
        "status": {"phase": phase},
    }


STUCK = "Show its events: kubectl describe pod -n ns p"


@pytest.mark.rule("blockers: a Job that has failed, and whose Pod does not terminate, is named with the Pod")
@pytest.mark.parametrize(
    ("pods", "why", "remedy"),
    [
        row(
            [pod()],
            "its Pod p does not end on node n1",
            f"(1) {STUCK} (2) {check_kubelet('n1')} (3) If the node is off and stays so, delete the Pod: {FORCE}",
            id="on a node",
        ),
        row([pod(phase="Pending", node="")], "its Pod p does not end", STUCK, id="not scheduled"),
        row(
            [pod(phase="Failed"), pod(job="other")],
            "its Pods have ended, and the Job controller does not mark it as failed",
            f"Check the Job controller: {LOG}",
            id="ended",
        ),
    ],
)
def test_pod_that_does_not_terminate_is_named(
    view: FakeView, pods: list[dict[str, Any]], why: str, remedy: str
) -> None:
    view.found["Pod"] = pods
    (found,) = find_blockers(failing_jobs.FINDERS, view, [failing(view)], []).blockers
    assert (found.reason, found.kind, found.name, found.node) == ("JobSlow", "Job", "j", "n1")
    assert found.message == f"Job ns/j: failed (DeadlineExceeded), but {why}"
    assert (found.remedy, found.since) == (remedy, view.ago(90))


def test_pods_have_a_minute_to_terminate(view: FakeView) -> None:
    view.found["Pod"] = [pod()]
    wait = failing(view)
    view.now = wait.since
    assert find_blockers(failing_jobs.FINDERS, view, [wait], []).blockers == []
