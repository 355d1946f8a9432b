"""The wait for the node's kubelet, which Rancher upgrades.

The commands post_drain and single_node_upgrade call it; facts/kubernetes.py has the rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.facts.kubernetes import is_same, kubelet_version
from upgrade_manager.facts.node_obstacles import agent_log, outdated
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import NODES

if TYPE_CHECKING:
    from upgrade_manager.toolkit.run.context import ToolkitContext


async def kubelet_outdated(context: ToolkitContext) -> str:
    """Return an empty text once the node's kubelet reports the release's Kubernetes."""
    release = (await context.release.versions())["kubernetes"]
    node = await context.client.get(NODES, context.node)
    found = objects.text(node, "status", "nodeInfo", "kubeletVersion")
    if is_same(found, release):
        return ""
    return f"node {context.node}: {outdated(found, kubelet_version(release))}. {agent_log(context.node)}"
