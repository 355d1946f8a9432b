"""Whether another controller's Deployment runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.kube import fields
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.resources import DEPLOYMENTS

if TYPE_CHECKING:
    from upgrade_manager.blockers.view import View


def deployment_problem(view: View, namespace: str, name: str) -> str:
    """Return why the Deployment does nothing; empty if at least one replica is available."""
    selector = f"metadata.name={name}"
    found = view.objects(Selection(resource=DEPLOYMENTS, namespace=namespace, field_selector=selector))
    if found and (fields.number(found[0], "status", "availableReplicas") or 0) > 0:
        return ""
    return f"Deployment {namespace}/{name} {'is not available' if found else 'does not exist'}"


def rollout_status(namespace: str, name: str) -> str:
    """Return the command that shows whether the Deployment becomes available."""
    return f"kubectl -n {namespace} rollout status deploy/{name}"
