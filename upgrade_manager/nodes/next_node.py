"""The message while the manager waits for Rancher to reach the next node.

The phase (pipeline/node_upgrade/phase.py) shows it while no node is under way.

Rancher drains a node before it upgrades the node's Kubernetes. Rancher drains a node that already runs the release's
Kubernetes only because of the new generation. While upgradeStrategy lacks the hooks, or after an upgrade of Rancher
itself, Rancher upgrades nodes without a drain, and never sets their hooks. Nodes, Machines and Secrets do not show
which nodes Rancher drains later, so that a blocker (HookLost) has the command for a drain that does not begin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.text import name_list
from upgrade_manager.facts import node_obstacles
from upgrade_manager.facts.kubernetes import is_same
from upgrade_manager.kube import objects
from upgrade_manager.nodes.pending_hooks import held_nodes

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.nodes.node_view import Observed

NEXT_NODE = "waiting for Rancher to upgrade the next node"


def next_node_message(names: Sequence[str], *, release: str) -> str:
    """Return the message, with the unstarted nodes that already run the release's Kubernetes."""
    if not names:
        return NEXT_NODE
    return f"{NEXT_NODE}; {name_list(names)}: {node_obstacles.undrained(release, nodes=len(names))}"


def undrained(observed: Observed, *, unstarted: Collection[str], release: str) -> list[str]:
    """Return the unstarted nodes that run the release's Kubernetes and have no pending hook."""
    kubelets = observed.nodes.derive(kubelet_of)
    names = {name for name, kubelet in kubelets if name in unstarted and is_same(kubelet, release)}
    if names:
        names -= {node for node, _ in held_nodes(observed.secrets, observed.machines)}
    return sorted(names)


def kubelet_of(node: Object) -> tuple[str, str]:
    """Return the node's name and the version of its kubelet."""
    return objects.name(node), (objects.status(node).get("nodeInfo") or {}).get("kubeletVersion", "")
