"""The failure policy of RKE2's chart rke2-multus, which owns the CustomResourceDefinition of VM networks.

The command cluster_upgrade sets it before anything else changes; RKE2 upgrades the chart when a node's RKE2 restarts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import KUBE_SYSTEM
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import AlreadyExists, Conflict
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.toolkit.charts.cluster_resources import HELM_CHART_CONFIGS

if TYPE_CHECKING:
    from upgrade_manager.toolkit.run.context import ToolkitContext

_MULTUS = "rke2-multus"
_ABORT = "abort"


async def abort_not_set(context: ToolkitContext) -> str:
    """Return the failure policy by which RKE2 may delete all VM networks."""
    config = await context.client.find(HELM_CHART_CONFIGS, _MULTUS, namespace=KUBE_SYSTEM)
    policy = objects.text(config, "spec", "failurePolicy")
    if policy == _ABORT:
        return ""
    found = f"has failurePolicy {policy or 'reinstall by default'}" if config is not None else "does not exist"
    return f"HelmChartConfig {KUBE_SYSTEM}/{_MULTUS} {found}"


async def set_abort(context: ToolkitContext) -> None:
    """Set the policy; values of the chart stay. Raises Conflict if another client writes the object meanwhile."""
    config = await context.client.find(HELM_CHART_CONFIGS, _MULTUS, namespace=KUBE_SYSTEM)
    spec = {"failurePolicy": _ABORT}
    if config is not None:
        patch = MergePatch({"spec": spec}).at(objects.resource_version(config))
        await context.client.patch(HELM_CHART_CONFIGS, _MULTUS, patch, namespace=KUBE_SYSTEM)
        return
    body = {"metadata": {"name": _MULTUS, "namespace": KUBE_SYSTEM}, "spec": spec}
    try:
        await context.client.create(HELM_CHART_CONFIGS, HELM_CHART_CONFIGS.with_type_meta(body))
    except AlreadyExists as error:
        raise Conflict(str(error)) from error
