"""Harvester's add-ons whose charts the release names: monitoring and logging.

The command cluster_upgrade runs these steps; helm_releases.py repairs a release that a killed helm leaves pending.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from upgrade_manager.facts import addons
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import ADDONS
from upgrade_manager.toolkit.charts.helm import Release
from upgrade_manager.toolkit.charts.helm_releases import release_missing

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.toolkit.iso.component_versions import Components
    from upgrade_manager.toolkit.run.context import ToolkitContext

_DEPLOYED = "AddonDeploySuccessful"
#: The tag of the event router's image in the values of the logging add-on; a registry before the name stays.
_EVENT_ROUTER_TAG = re.compile(r"(?<=rancher/harvester-eventrouter:)[\w.-]+", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Addon:
    name: str
    namespace: str
    #: The chart's version in the release.
    version: str


async def addons_missing(context: ToolkitContext) -> str:
    """Return the first add-on without the release's chart, or the first enabled add-on that is not deployed with it."""
    for addon in _addons(await context.release.components()):
        obj = await context.client.find(ADDONS, addon.name, namespace=addon.namespace)
        missing = await _missing(context, addon, obj) if obj is not None else ""
        if missing:
            return missing
    return ""


async def upgrade_addons(context: ToolkitContext) -> None:
    """Set the chart's version, also of disabled add-ons, because the repository has only the release's charts."""
    components = await context.release.components()
    for addon in _addons(components):
        obj = await context.client.find(ADDONS, addon.name, namespace=addon.namespace)
        if obj is None or objects.spec(obj).get("version") == addon.version:
            continue
        spec = {"version": addon.version}
        content = objects.spec(obj).get("valuesContent") or ""
        changed = with_event_router(content, components.event_router)
        if changed != content:
            spec["valuesContent"] = changed
        patch = MergePatch({"spec": spec}).at(objects.resource_version(obj))
        await context.client.patch(ADDONS, addon.name, patch, namespace=addon.namespace)


def with_event_router(content: str, image: str) -> str:
    """Return an add-on's values with the tag of this event router's image; all other values stay unchanged."""
    tag = image.rpartition("/")[2].partition(":")[2]
    return _EVENT_ROUTER_TAG.sub(tag, content) if tag else content


async def _missing(context: ToolkitContext, addon: _Addon, obj: Object) -> str:
    about, spec = addons.named(obj), objects.spec(obj)
    if spec.get("version") != addon.version:
        return f"{about} has chart version {spec.get('version')} instead of {addon.version}"
    if not spec.get("enabled"):
        return ""
    if objects.text(obj, "status", "status") != _DEPLOYED:
        return f"{about} {addon.version} is {addons.state(obj)}"
    # Right after the change, the add-on still has the status of the previous chart.
    release = Release(name=addon.name, namespace=addon.namespace)
    return await release_missing(context, release, chart=f"{spec.get('chart')}-{addon.version}")


def _addons(components: Components) -> tuple[_Addon, ...]:
    return (
        _Addon(name="rancher-monitoring", namespace="cattle-monitoring-system", version=components.monitoring_chart),
        _Addon(name="rancher-logging", namespace="cattle-logging-system", version=components.logging_chart),
    )
