"""Nodes that an earlier plan left cordoned.

checks/nodes.py and checks/vms.py accept these nodes; pipeline/ending/held_nodes.py leaves them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import ANNOTATION_PRE_HOOK
from upgrade_manager.kube import objects
from webhook.cluster import NotInstalled
from webhook.listings import CLUSTERS, read_each

if TYPE_CHECKING:
    from collections.abc import Sequence

    from upgrade_manager.kube.objects import Object
    from webhook.cluster import ClusterReader


async def uncordon_held(cluster: ClusterReader, nodes: Sequence[Object]) -> Sequence[Object]:
    """Return the nodes, which count as uncordoned while Rancher's cluster has the drain hooks of an earlier plan.

    That plan ended early, and Rancher keeps a node cordoned until the next plan takes over (docs/decisions/0013).
    """
    if not any(objects.is_true(node, "spec", "unschedulable") for node in nodes):
        return nodes
    (clusters,) = await read_each(cluster, CLUSTERS)
    if isinstance(clusters, NotInstalled) or not any(map(_has_drain_hooks, clusters)):
        return nodes
    # The listing keeps no other field of the spec.
    return [{**node, "spec": {}} for node in nodes]


def _has_drain_hooks(cluster: Object) -> bool:
    strategy = objects.mapping(cluster, "spec", "rkeConfig", "upgradeStrategy")
    hooks = [hook for options in strategy.values() for hook in objects.items(options, "preDrainHooks")]
    return any(objects.text(hook, "annotation") == ANNOTATION_PRE_HOOK for hook in hooks)
