"""Outages of Deployments, for the finders of blockers and for the upgrade repository."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from upgrade_manager.api.timestamps import parse_time
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from datetime import datetime

    from upgrade_manager.kube.objects import Object


class DeploymentProblem(StrEnum):
    """The outages of a Deployment, in words that follow the Deployment's name in messages."""

    ABSENT = "does not exist"
    SCALED_DOWN = "is scaled to 0 replicas"
    UNAVAILABLE = "is not available"


def deployment_problem(deployment: Object | None) -> DeploymentProblem | None:
    """Return why the Deployment does nothing; None if at least one replica is available."""
    if deployment is None:
        return DeploymentProblem.ABSENT
    if objects.number(deployment, "status", "availableReplicas"):
        return None
    if objects.number(deployment, "spec", "replicas") == 0:
        return DeploymentProblem.SCALED_DOWN
    return DeploymentProblem.UNAVAILABLE


def available_since(deployment: Object) -> datetime | None:
    """Return the time of the last change of the Deployment's availability; None if the Deployment lacks the time."""
    return parse_time(objects.text(objects.condition(deployment, "Available"), "lastTransitionTime"))


def refused_pods(deployment: Object) -> str:
    """Return the reason why the API server refuses the Deployment's Pods; empty without a refusal."""
    refused = objects.condition(deployment, "ReplicaFailure")
    if objects.text(refused, "status") != "True":
        return ""
    return f"its Pods cannot be created: {objects.excerpt(refused, 'message') or objects.text(refused, 'reason')}"
