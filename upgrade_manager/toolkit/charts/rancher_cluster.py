"""The Kubernetes version of Rancher's cluster, which a single-node upgrade sets itself.

The command single_node_upgrade runs these steps, and post_drain waits for the kubelet by them; on clusters of several
nodes pipeline/settings/rancher.py sets the version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import FLEET_LOCAL, PROVISIONING_CLUSTER
from upgrade_manager.facts.drain_hooks import HOOKS, remove_command
from upgrade_manager.facts.rancher_cluster import NAME, reported
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import PROVISIONING_CLUSTERS
from upgrade_manager.toolkit.host.kubernetes_version import kubelet_outdated
from upgrade_manager.toolkit.run.errors import StepFailed

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.toolkit.run.context import ToolkitContext


async def check_drain_hooks(context: ToolkitContext) -> None:
    """Raise StepFailed for drain hooks: Rancher would wait for them, and the only node is never drained."""
    cluster = await _cluster(context)
    if await _wanted(context) == objects.spec(cluster).get("kubernetesVersion"):
        return
    strategy = (objects.spec(cluster).get("rkeConfig") or {}).get("upgradeStrategy") or {}
    # The control plane's options apply, because worker options are for nodes without etcd and control plane.
    options = strategy.get("controlPlaneDrainOptions") or {}
    names = [hook["annotation"] for member in HOOKS for hook in options.get(member) or () if hook.get("annotation")]
    if names:
        raise StepFailed(
            f"{NAME} has the drain hooks {', '.join(names)}, for which Rancher would wait on a single node. "
            f"Remove them: {remove_command(strategy, names)}"
        )


async def version_missing(context: ToolkitContext) -> str:
    """Return an empty text once the cluster has the release's Kubernetes version."""
    wanted, found = await _wanted(context), objects.spec(await _cluster(context)).get("kubernetesVersion")
    return "" if found == wanted else f"{NAME} has Kubernetes {found or 'unset'} instead of {wanted}"


async def set_version(context: ToolkitContext) -> None:
    """Set the version, from which Rancher upgrades the node; other fields of rkeConfig stay."""
    patch = MergePatch({"spec": {"kubernetesVersion": await _wanted(context), "rkeConfig": {}}})
    await context.client.patch(PROVISIONING_CLUSTERS, PROVISIONING_CLUSTER, patch, namespace=FLEET_LOCAL)


async def upgrade_pending(context: ToolkitContext) -> str:
    """Return an empty text once the kubelet reports the release's Kubernetes; until then, also Rancher's conditions."""
    missing = await kubelet_outdated(context)
    report = reported(await _cluster(context)) if missing else ""
    return f"{missing}; Rancher reports: {report}" if report else missing


async def _cluster(context: ToolkitContext) -> Object:
    return await context.client.get(PROVISIONING_CLUSTERS, PROVISIONING_CLUSTER, namespace=FLEET_LOCAL)


async def _wanted(context: ToolkitContext) -> str:
    return (await context.release.versions())["kubernetes"]
