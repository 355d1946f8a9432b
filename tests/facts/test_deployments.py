from __future__ import annotations

from typing import Any

import pytest

from upgrade_manager.facts.deployments import available_since, deployment_problem, refused_pods

row = pytest.param


@pytest.mark.parametrize(
    ("deployment", "problem"),
    [
        row(None, "does not exist", id="absent"),
        row({"status": {"availableReplicas": 1}, "spec": {"replicas": 3}}, None, id="one available replica"),
        row({"spec": {"replicas": 0}}, "is scaled to 0 replicas", id="scaled down"),
        row({"spec": {"replicas": 0}, "status": {"availableReplicas": 1}}, None, id="scaled down, still available"),
        row({"spec": {"replicas": 1}}, "is not available", id="no available replica"),
        row({"status": {"availableReplicas": "1"}}, "is not available", id="wrong type"),
    ],
)
def test_problem_of_a_deployment(deployment: dict[str, Any] | None, problem: str | None) -> None:
    assert deployment_problem(deployment) == problem


def failure(status: str = "True", **more: object) -> dict[str, Any]:
    return {"status": {"conditions": [{"type": "ReplicaFailure", "status": status, **more}]}}


@pytest.mark.parametrize(
    ("deployment", "words"),
    [
        row({}, "", id="no condition"),
        row(failure("False", message="quota"), "", id="over"),
        row(failure(message="quota\nexceeded"), "its Pods cannot be created: quota exceeded", id="message"),
        row(failure(reason="FailedCreate", message=None), "its Pods cannot be created: FailedCreate", id="reason"),
    ],
)
def test_pods_that_the_api_server_refuses(deployment: dict[str, Any], words: str) -> None:
    assert refused_pods(deployment) == words


def test_time_of_a_deployment_that_does_not_report_it() -> None:
    assert available_since({}) is None
