"""Checks that the services of Harvester's chart run in the release's version.

The command cluster_upgrade waits for the services after managed_charts.py has upgraded the chart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import HARVESTER_SYSTEM, LONGHORN_SYSTEM, SETTING_SERVER_VERSION
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import KUBEVIRTS, SETTINGS
from upgrade_manager.toolkit.charts.rollouts import daemon_set_missing
from upgrade_manager.toolkit.vms.kubevirt import KUBEVIRT

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.toolkit.run.context import ToolkitContext

_LONGHORN_MANAGER = "longhorn-manager"
#: Conditions of KubeVirt, and their status after an upgrade.
_CONDITIONS = {"Available": "True", "Progressing": "False", "Degraded": "False"}


async def kubevirt_missing(context: ToolkitContext) -> str:
    """Return why KubeVirt does not run in the release's version."""
    about = f"KubeVirt {HARVESTER_SYSTEM}/{KUBEVIRT}"
    kubevirt = await context.client.find(KUBEVIRTS, KUBEVIRT, namespace=HARVESTER_SYSTEM)
    if kubevirt is None:
        return f"{about} does not exist"
    version, status = (await context.release.components()).kubevirt, objects.status(kubevirt)
    running = status.get("observedKubeVirtVersion") or "unknown"
    if running.removeprefix("v") != version.removeprefix("v"):
        return f"{about} has version {running} instead of {version}"
    if status.get("phase") != "Deployed":
        return f"{about} {version} is {status.get('phase') or 'not deployed'}"
    reason = _condition_missing(kubevirt)
    return f"{about} {version}: {reason}" if reason else ""


def _condition_missing(kubevirt: Object) -> str:
    for type_, wanted in _CONDITIONS.items():
        condition = objects.condition(kubevirt, type_) or {"status": "Unknown"}
        if condition.get("status") != wanted:
            return f"{type_} is {condition.get('status')}: {condition.get('message') or 'no reason is reported'}"
    return ""


async def longhorn_missing(context: ToolkitContext) -> str:
    """Return why Longhorn's manager does not run in its latest template; engines are upgraded later."""
    return await daemon_set_missing(context.client, _LONGHORN_MANAGER, namespace=LONGHORN_SYSTEM)


async def harvester_missing(context: ToolkitContext) -> str:
    """Return why Harvester does not report the release in the Setting that it updates at its start."""
    setting = await context.client.get(SETTINGS, SETTING_SERVER_VERSION)
    running = setting.get("value") or setting.get("default") or "unknown"
    version = (await context.release.components()).harvester
    return "" if running == version else f"Harvester reports version {running} instead of {version}"
