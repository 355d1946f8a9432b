"""Checks that the services of Harvester's chart run in the release's version.

The command cluster_upgrade waits for the services after managed_charts.py has upgraded the chart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import HARVESTER_SYSTEM, LONGHORN_SYSTEM, SETTING_SERVER_VERSION
from upgrade_manager.facts.kubevirt import KUBEVIRT, NAME, SETTLED, unmet
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import KUBEVIRTS, SETTINGS
from upgrade_manager.toolkit.charts.longhorn_nodes import names_of_nodes
from upgrade_manager.toolkit.charts.rollouts import daemon_set_missing

if TYPE_CHECKING:
    from upgrade_manager.toolkit.run.context import ToolkitContext

_LONGHORN_MANAGER = "longhorn-manager"


async def kubevirt_missing(context: ToolkitContext) -> str:
    """Return why KubeVirt does not run in the release's version."""
    kubevirt = await context.client.find(KUBEVIRTS, KUBEVIRT, namespace=HARVESTER_SYSTEM)
    version = (await context.release.components()).kubevirt
    running = objects.text(kubevirt, "status", "observedKubeVirtVersion") or "unknown"
    if kubevirt is not None and running.removeprefix("v") != version.removeprefix("v"):
        return f"{NAME} has version {running} instead of {version}"
    return unmet(kubevirt, SETTLED)


async def longhorn_missing(context: ToolkitContext) -> str:
    """Return why Longhorn's manager does not run in its latest template on each node; engines are upgraded later."""
    nodes = len(await names_of_nodes(context.client))
    return await daemon_set_missing(context.client, _LONGHORN_MANAGER, namespace=LONGHORN_SYSTEM, nodes=nodes)


async def harvester_missing(context: ToolkitContext) -> str:
    """Return why Harvester does not report the release in the Setting that it updates at its start."""
    setting = await context.client.get(SETTINGS, SETTING_SERVER_VERSION)
    running = setting.get("value") or setting.get("default") or "unknown"
    version = (await context.release.components()).harvester
    return "" if running == version else f"Harvester reports version {running} instead of {version}"
