"""Outages of Deployments with their remedies, for the finders of blockers, the upgrade repository and the Jobs.

blockers/deployments.py reads Deployments for the finders; the cluster upgrade (toolkit/charts/rollouts.py) waits for
rollouts; the upgrade repository (blockers/repository_outage.py, pipeline/phases/repository.py) has the same remedies.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from upgrade_manager.api.remedy import Remedy
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


class DeploymentOutage(NamedTuple):
    """The reason why a Deployment does nothing, and the remedies."""

    #: A sentence that names the Deployment.
    problem: str
    kind: DeploymentProblem
    ways_out: tuple[Remedy, ...]


def outage_of(deployment: Object | None, namespace: str, name: str) -> DeploymentOutage | None:
    """Return the outage of the Deployment; None if at least one replica is available."""
    problem = deployment_problem(deployment)
    if problem is None:
        return None
    ways_out = _ways_out(problem, namespace, name, deployment)
    return DeploymentOutage(problem=f"Deployment {namespace}/{name} {problem}", kind=problem, ways_out=ways_out)


def _ways_out(problem: DeploymentProblem, namespace: str, name: str, deployment: Object | None) -> tuple[Remedy, ...]:
    if problem is DeploymentProblem.ABSENT:
        return (Remedy("Install it again", command=f"kubectl -n {namespace} get deploy"),)
    if problem is DeploymentProblem.SCALED_DOWN:
        # Nothing is to be given back: the cluster needs this controller after the upgrade, too.
        return (Remedy("Start it", command=f"kubectl -n {namespace} scale deploy/{name} --replicas=1"),)
    watch = Remedy("Watch it", command=f"kubectl -n {namespace} rollout status deploy/{name} --timeout=30s")
    return (watch, *pods_ways_out(namespace, name, pod_selector(deployment)))


def is_elected(deployment: Object) -> bool:
    """Return True if the manager's Deployment runs it with leader election: without it a Lease is one of before."""
    containers = objects.items(deployment, "spec", "template", "spec", "containers")
    arguments = (one for container in containers for one in objects.items(container, "args"))
    return any(one in {"--leader-elect", "--leader-elect=true"} for one in arguments)


def pod_selector(deployment: Object | None) -> str:
    """Return the label selector of the Deployment's Pods; empty for an absent Deployment."""
    labels = objects.strings(deployment, "spec", "selector", "matchLabels")
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


def pods_ways_out(namespace: str, name: str, selector: str) -> tuple[Remedy, Remedy]:
    """Return the remedies for a Deployment whose Pods do not serve; the selector is empty if it is unknown."""
    hangs = Remedy("If they run but are not ready, restart them", command=restart(namespace, name))
    return show_pods(namespace, selector), hangs


def show_pods(namespace: str, selector: str) -> Remedy:
    """Return the first of these remedies, which the error of a failed request names, too."""
    selected = f" -l {selector}" if selector else ""
    return Remedy("Show the events of its Pods", command=f"kubectl describe pods -n {namespace}{selected}")


def restart(namespace: str, name: str) -> str:
    """Return the command that restarts a controller that hangs."""
    return f"kubectl -n {namespace} rollout restart deploy/{name}"


def hangs(log: str, namespace: str, name: str, *, after: str) -> tuple[Remedy, Remedy]:
    """Return the remedies for a controller that does nothing: its log, and a restart if it logs nothing for so long."""
    restarts = Remedy(f"If its last line is older than {after}, it hangs", command=restart(namespace, name))
    return Remedy("Show its log", command=log), restarts


def available_since(deployment: Object) -> datetime | None:
    """Return the time of the last change of the Deployment's availability; None if the Deployment lacks the time."""
    return parse_time(objects.text(objects.condition(deployment, "Available"), "lastTransitionTime"))


def refused_pods(deployment: Object) -> str:
    """Return the reason why the API server refuses the Deployment's Pods; empty without a refusal."""
    refused = objects.condition(deployment, "ReplicaFailure")
    if objects.text(refused, "status") != "True":
        return ""
    return f"its Pods cannot be created: {objects.excerpt(refused, 'message') or objects.text(refused, 'reason')}"
