"""Whether another controller's Deployment runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.timestamps import parse_time
from upgrade_manager.kube import fields
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.resources import DEPLOYMENTS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from upgrade_manager.blockers.view import View
    from upgrade_manager.kube.objects import Object


def deployment_problem(view: View, namespace: str, name: str) -> str:
    """Return why the Deployment does nothing; empty if at least one replica is available."""
    found = _read(view, namespace, name)
    if found and (fields.number(found[0], "status", "availableReplicas") or 0) > 0:
        return ""
    return f"Deployment {namespace}/{name} {'is not available' if found else 'does not exist'}"


def has_just_started(view: View, namespace: str, name: str, *, within: timedelta) -> bool:
    """Return True if the Deployment became available so recently that its work is not late yet."""
    for deployment in _read(view, namespace, name):
        since = parse_time(fields.text(fields.condition(deployment, "Available"), "lastTransitionTime"))
        return since is not None and view.now - since < within
    return False


def _read(view: View, namespace: str, name: str) -> Sequence[Object]:
    selector = f"metadata.name={name}"
    return view.objects(Selection(resource=DEPLOYMENTS, namespace=namespace, field_selector=selector))


def rollout_status(namespace: str, name: str) -> str:
    """Return the command that shows whether the Deployment becomes available."""
    return f"kubectl -n {namespace} rollout status deploy/{name}"
