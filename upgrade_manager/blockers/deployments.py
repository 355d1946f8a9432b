"""The outage of another controller's Deployment, with its remedy; facts/deployments.py has the rule.

The finders imports, migrations, rancher, repository_outage and upgrade_controller call it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from upgrade_manager.blockers.remedy import steps
from upgrade_manager.facts.deployments import DeploymentProblem, available_since, deployment_problem
from upgrade_manager.kube import objects
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.resources import DEPLOYMENTS

if TYPE_CHECKING:
    from datetime import timedelta

    from upgrade_manager.blockers.object_view import View
    from upgrade_manager.kube.objects import Object


class Outage(NamedTuple):
    """The reason why a Deployment has no available replica, and the remedy."""

    problem: str
    remedy: str


def outage(view: View, namespace: str, name: str) -> Outage | None:
    """Return the outage of the Deployment; None if at least one replica is available."""
    named = f"Deployment {namespace}/{name}"
    deployment = _read(view, namespace, name)
    problem = deployment_problem(deployment)
    if problem is None:
        return None
    return Outage(f"{named} {problem}", _remedy(problem, namespace, name, deployment))


def _remedy(problem: DeploymentProblem, namespace: str, name: str, deployment: Object | None) -> str:
    if problem is DeploymentProblem.ABSENT:
        return f"Install it again: kubectl -n {namespace} get deploy"
    if problem is DeploymentProblem.SCALED_DOWN:
        return f"Start it: kubectl -n {namespace} scale deploy/{name} --replicas=1"
    watch = f"Watch it: kubectl -n {namespace} rollout status deploy/{name} --timeout=30s"
    labels = objects.strings(deployment, "spec", "selector", "matchLabels")
    selector = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
    show = f"Show its Pods: kubectl -n {namespace} get pods" + (f" -l {selector}" if selector else "")
    hangs = f"If its Pods hang, restart them: {restart(namespace, name)}"
    return steps(watch, show, hangs)


def restart(namespace: str, name: str) -> str:
    """Return the command that restarts a controller that hangs."""
    return f"kubectl -n {namespace} rollout restart deploy/{name}"


def has_just_started(view: View, namespace: str, name: str, *, within: timedelta) -> bool:
    """Return True if the Deployment became available so recently that its work is not late yet."""
    deployment = _read(view, namespace, name)
    since = None if deployment is None else available_since(deployment)
    return since is not None and view.now - since < within


def _read(view: View, namespace: str, name: str) -> Object | None:
    selector = f"metadata.name={name}"
    found = view.objects(Selection(resource=DEPLOYMENTS, namespace=namespace, field_selector=selector))
    return found[0] if found else None
