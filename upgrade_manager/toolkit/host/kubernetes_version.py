"""The wait for the node's kubelet, which Rancher upgrades.

The commands post_drain and single_node_upgrade call it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import NODES

if TYPE_CHECKING:
    from upgrade_manager.toolkit.run.context import ToolkitContext

#: Part of a release candidate's version that its kubelet does not report.
_CANDIDATE = re.compile(r"-rc\.?\d+")


def kubelet_version(release: str) -> str:
    """Return the version that the kubelet of a release's Kubernetes reports."""
    return _CANDIDATE.sub("", release)


async def kubelet_outdated(context: ToolkitContext) -> str:
    """Return an empty text once the node's kubelet reports the release's Kubernetes."""
    release = (await context.release.versions())["kubernetes"]
    wanted = kubelet_version(release)
    node = await context.client.get(NODES, context.node)
    found = (objects.status(node).get("nodeInfo") or {}).get("kubeletVersion") or "an unknown version"
    return (
        "" if found in {wanted, release} else f"the kubelet of node {context.node} reports {found} instead of {wanted}"
    )
