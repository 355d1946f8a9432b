"""The values of RKE2's chart rke2-traefik, the ingress controller of v1.9.

The command cluster_upgrade creates them before a node's RKE2 restarts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import KUBE_SYSTEM
from upgrade_manager.kube.errors import AlreadyExists
from upgrade_manager.release.migrations.v1_8_to_v1_9 import TRAEFIK, TRAEFIK_VALUES
from upgrade_manager.toolkit.charts.cluster_resources import HELM_CHART_CONFIGS

if TYPE_CHECKING:
    from upgrade_manager.toolkit.run.context import ToolkitContext


async def values_missing(context: ToolkitContext) -> str:
    """Return that the chart would be installed without values."""
    found = await context.client.find(HELM_CHART_CONFIGS, TRAEFIK, namespace=KUBE_SYSTEM)
    return "" if found is not None else f"HelmChartConfig {KUBE_SYSTEM}/{TRAEFIK} does not exist"


async def create_values(context: ToolkitContext) -> None:
    """Create the values; those that exist meanwhile stay."""
    body = {"metadata": {"name": TRAEFIK, "namespace": KUBE_SYSTEM}, "spec": {"valuesContent": TRAEFIK_VALUES}}
    try:
        await context.client.create(HELM_CHART_CONFIGS, HELM_CHART_CONFIGS.with_type_meta(body))
    except AlreadyExists:
        return
