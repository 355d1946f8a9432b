"""The Cluster of Cluster API from which Rancher provisions the nodes.

The command cluster_upgrade waits for it before Rancher is upgraded, and after the new Rancher has started.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import FLEET_LOCAL, PROVISIONING_CLUSTER
from upgrade_manager.kube import objects
from upgrade_manager.toolkit.charts.cluster_resources import CAPI_CLUSTERS

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.toolkit.run.context import ToolkitContext

_PROVISIONED = "Provisioned"
_NAME = f"Cluster {FLEET_LOCAL}/{PROVISIONING_CLUSTER} ({CAPI_CLUSTERS.group})"
_SHOW = f"Show it: kubectl get {CAPI_CLUSTERS.name} -n {FLEET_LOCAL} {PROVISIONING_CLUSTER} -o yaml"


async def cluster_not_provisioned(context: ToolkitContext) -> str:
    """Return why Rancher still works on the cluster; empty if it does not."""
    cluster = await _cluster(context)
    if cluster is None:
        return f"{_NAME} does not exist"
    phase, generation = objects.text(cluster, "status", "phase"), objects.number(cluster, "metadata", "generation")
    observed = objects.number(cluster, "status", "observedGeneration")
    if phase != _PROVISIONED:
        return f"{_NAME} is in phase {phase or 'unknown'} instead of {_PROVISIONED}. {_SHOW}"
    if observed != generation:
        return f"{_NAME}: its controller has observed generation {observed} instead of {generation}. {_SHOW}"
    return ""


async def _cluster(context: ToolkitContext) -> Object | None:
    """Return the Cluster in the first version that the API server serves."""
    for version in CAPI_CLUSTERS.versions:
        resource = replace(CAPI_CLUSTERS, version=version)
        found = await context.client.find(resource, PROVISIONING_CLUSTER, namespace=FLEET_LOCAL)
        if found is not None:
            return found
    return None
