"""The cluster serves the APIs that every Harvester cluster has; without them gate.py checks nothing else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from upgrade_manager.api.text import name_list
from upgrade_manager.kube import objects, resources
from webhook.check import Check, Finding

if TYPE_CHECKING:
    from upgrade_manager.kube.client import Client
    from webhook.check import Subject

NAME = "Harvester"
CORE = (
    resources.SETTINGS,
    resources.VERSIONS,
    resources.VIRTUAL_MACHINE_IMAGES,
    resources.PROVISIONING_CLUSTERS,
    resources.MACHINES,
    resources.SUC_PLANS,
)


#: The aggregated discovery of Kubernetes 1.30 and later, else the names of the groups.
_DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"


def check(client: Client) -> Check:
    """Return the check, which reads the discovery document that every user may read."""

    async def find(_: Subject) -> list[Finding]:
        message = await problem(client)
        return [Finding(problem=message)] if message else []

    return Check(name=NAME, field="spec", find=find)


async def problem(client: Client) -> str:
    """Return why this is not a Harvester cluster, in one sentence; empty if it is one. Raises KubeError."""
    served = await served_resources(client)
    missing = [one.name for one in CORE if f"{one.plural}.{one.group}" not in served and one.group not in served]
    if not missing:
        return ""
    lacks = f"because it does not serve {name_list(missing)}"
    return f"This is not a Harvester cluster, {lacks}: select another by --context"


async def served_resources(client: Client) -> set[str]:
    """Return the names of the resources that the cluster serves, or of their groups alone. Raises KubeError."""
    response = await client.raw("GET", "/apis", accept=_DISCOVERY)
    document = json.loads(response.body)
    groups = {objects.text(group, "name") for group in objects.items(document, "groups")}
    return groups | {
        f"{objects.text(resource, 'resource')}.{objects.text(group, 'metadata', 'name')}"
        for group in objects.items(document, "items")
        for version in objects.items(group, "versions")
        for resource in objects.items(version, "resources")
    }
