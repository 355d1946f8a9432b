"""Whether another controller's Deployment runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from upgrade_manager.api.timestamps import parse_time
from upgrade_manager.blockers.remedy import steps
from upgrade_manager.kube import objects
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.resources import DEPLOYMENTS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from upgrade_manager.blockers.view import View
    from upgrade_manager.kube.objects import Object


class Outage(NamedTuple):
    """Why a Deployment does nothing, and what to do."""

    problem: str
    remedy: str


def outage(view: View, namespace: str, name: str) -> Outage | None:
    """Return why the Deployment does nothing; None if at least one replica is available."""
    named = f"Deployment {namespace}/{name}"
    found = _read(view, namespace, name)
    if not found:
        return Outage(f"{named} does not exist", f"Install it again: kubectl -n {namespace} get deploy")
    if objects.number(found[0], "status", "availableReplicas"):
        return None
    if objects.number(found[0], "spec", "replicas") == 0:
        scale = f"kubectl -n {namespace} scale deploy/{name} --replicas=1"
        return Outage(f"{named} is scaled to 0 replicas", f"Start it: {scale}")
    watch = f"Watch it: kubectl -n {namespace} rollout status deploy/{name} --timeout=30s"
    labels = objects.strings(found[0], "spec", "selector", "matchLabels")
    selector = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
    show = f"Show its Pods: kubectl -n {namespace} get pods" + (f" -l {selector}" if selector else "")
    hangs = f"If its Pods hang, restart them: {restart(namespace, name)}"
    return Outage(f"{named} is not available", steps(watch, show, hangs))


def restart(namespace: str, name: str) -> str:
    """Return the command that restarts a controller that hangs."""
    return f"kubectl -n {namespace} rollout restart deploy/{name}"


def has_just_started(view: View, namespace: str, name: str, *, within: timedelta) -> bool:
    """Return True if the Deployment became available so recently that its work is not late yet."""
    for deployment in _read(view, namespace, name):
        since = parse_time(objects.text(objects.condition(deployment, "Available"), "lastTransitionTime"))
        return since is not None and view.now - since < within
    return False


def _read(view: View, namespace: str, name: str) -> Sequence[Object]:
    selector = f"metadata.name={name}"
    return view.objects(Selection(resource=DEPLOYMENTS, namespace=namespace, field_selector=selector))
