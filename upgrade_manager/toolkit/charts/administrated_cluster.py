"""The annotation by which Rancher 2.15 upgrades the system agents of the cluster in which it runs.

The command cluster_upgrade writes it before Rancher is upgraded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.release.migrations.v1_8_to_v1_9 import ADMINISTRATED
from upgrade_manager.toolkit.charts.cluster_resources import RANCHER_CLUSTERS

if TYPE_CHECKING:
    from upgrade_manager.toolkit.run.context import ToolkitContext

_LOCAL = "local"


async def cluster_not_annotated(context: ToolkitContext) -> str:
    """Return that Rancher's own cluster lacks the annotation. Raises NotFound without the cluster."""
    cluster = await context.client.get(RANCHER_CLUSTERS, _LOCAL, metadata_only=True)
    if objects.annotations_of(cluster).get(ADMINISTRATED) == "true":
        return ""
    return f"Cluster {_LOCAL} of management.cattle.io lacks the annotation {ADMINISTRATED}"


async def annotate_cluster(context: ToolkitContext) -> None:
    """Set the annotation."""
    patch = MergePatch({"metadata": {"annotations": {ADMINISTRATED: "true"}}})
    await context.client.patch(RANCHER_CLUSTERS, _LOCAL, patch)
