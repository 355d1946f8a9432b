"""Checks that the Pods of a Deployment or DaemonSet run its latest template.

rancher.py, system_services.py and chart_repository.py wait for rollouts by these checks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.facts.deployments import DeploymentProblem, deployment_problem, outage_of
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import DEPLOYMENTS
from upgrade_manager.toolkit.charts.cluster_resources import DAEMON_SETS

if TYPE_CHECKING:
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object


async def deployment_missing(client: Client, name: str, *, namespace: str) -> str:
    """Return the Pods of the Deployment that are not rolled out; empty once all Pods are rolled out."""
    obj = await client.find(DEPLOYMENTS, name, namespace=namespace)
    if obj is None or deployment_problem(obj) is DeploymentProblem.SCALED_DOWN:
        outage = outage_of(obj, namespace, name)
        return ". ".join([outage.problem, *map(str, outage.ways_out)]) if outage else ""
    status, wanted = objects.status(obj), int(objects.spec(obj).get("replicas", 1))
    updated = int(status.get("updatedReplicas") or 0)
    # Pods of the previous template are deleted last.
    excess = int(status.get("replicas") or 0) - updated
    available = int(status.get("availableReplicas") or 0)
    return _missing(obj, f"Deployment {namespace}/{name}", updated, available, wanted, excess=excess)


async def daemon_set_missing(client: Client, name: str, *, namespace: str, nodes: int) -> str:
    """Return the Pods of the DaemonSet that are not rolled out, or not ready on so many nodes; empty without any."""
    obj = await client.find(DAEMON_SETS, name, namespace=namespace)
    if obj is None:
        return f"DaemonSet {namespace}/{name} does not exist"
    status = objects.status(obj)
    updated, available = int(status.get("updatedNumberScheduled") or 0), int(status.get("numberAvailable") or 0)
    wanted, ready = int(status.get("desiredNumberScheduled") or 0), int(status.get("numberReady") or 0)
    about = f"DaemonSet {namespace}/{name}"
    missing = _missing(obj, about, updated, available, wanted)
    return missing or (f"{about}: {ready} Pods are ready on {nodes} nodes" if ready < nodes else "")


def _missing(obj: Object, about: str, updated: int, available: int, wanted: int, *, excess: int = 0) -> str:
    if int(objects.status(obj).get("observedGeneration") or 0) < int(objects.metadata(obj).get("generation") or 0):
        return f"{about}: its change is not observed yet"
    if updated < wanted or available < wanted:
        return f"{about}: {updated} of {wanted} Pods are updated, {available} are available"
    return f"{about}: {excess} old Pods are not deleted" if excess > 0 else ""
