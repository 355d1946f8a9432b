"""Nodes that an earlier plan left cordoned, by the unfinished drains on their machine-plan Secrets.

checks/nodes.py and checks/vms.py accept these nodes, and no others; pipeline/ending/held_nodes.py leaves them. The gate
(nodes/gate.py) has the same rule, facts/machine_plan.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.facts import machine_plan
from upgrade_manager.kube import objects
from webhook.cluster import NotInstalled
from webhook.listings import MACHINE_PLANS, MACHINES, read_each

if TYPE_CHECKING:
    from collections.abc import Sequence

    from upgrade_manager.kube.objects import Object
    from webhook.cluster import ClusterReader


async def held_nodes(cluster: ClusterReader, nodes: Sequence[Object]) -> frozenset[str]:
    """Return the cordoned nodes whose drain an earlier plan has begun: Rancher uncordons them in the next plan.

    Rancher's strategy does not show them: it is given back once all nodes run the release's Kubernetes.
    """
    cordoned = {objects.name(node) for node in nodes if objects.is_true(node, "spec", "unschedulable")}
    if not cordoned:
        return frozenset()
    secrets, machines = await read_each(cluster, MACHINE_PLANS, MACHINES)
    if isinstance(secrets, NotInstalled) or isinstance(machines, NotInstalled):
        return frozenset()
    return machine_plan.held_nodes(cordoned, secrets, machines)
