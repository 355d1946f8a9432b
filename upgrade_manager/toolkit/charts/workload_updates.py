"""Suspends the migrations by which KubeVirt updates running VMs, while system services are upgraded.

The command cluster_upgrade runs these steps, and resumes the migrations after a failure.

The list of methods is changed by a value of the ManagedChart, not in the KubeVirt object: Fleet owns that field, and
refuses to deploy the chart after another client has changed it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from upgrade_manager.api.keys import PREFIX
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import merge_diff
from upgrade_manager.toolkit.charts.managed_charts import (
    HARVESTER,
    generation_record,
    patch_chart,
    read_chart,
    target_version,
    without_effect,
)

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.toolkit.run.context import ToolkitContext

#: The list of methods before this command changed the list, as JSON; null for a chart without the list.
ANNOTATION_METHODS = f"{PREFIX}/original-workload-update-methods"
#: The place of KubeVirt's spec.workloadUpdateStrategy.workloadUpdateMethods in the values of Harvester's chart.
_PATH = ("kubevirt", "spec", "workloadUpdateStrategy", "workloadUpdateMethods")


async def updates_not_suspended(context: ToolkitContext) -> str:
    """Return the reason why KubeVirt may migrate VMs; empty also after Harvester's upgrade."""
    chart = await read_chart(context.client, HARVESTER)
    version = target_version(await context.release.components(), HARVESTER)
    if methods_of(_values(chart)) == [] or not without_effect(chart, version):
        return ""
    return f"ManagedChart {objects.name(chart)}: workloadUpdateMethods of KubeVirt is not emptied"


async def suspend_updates(context: ToolkitContext) -> None:
    """Empty the list of methods, and record the chart's value. An older record is kept."""
    chart = await read_chart(context.client, HARVESTER)
    values, annotations = _values(chart), generation_record(chart)
    if ANNOTATION_METHODS not in objects.annotations_of(chart):
        annotations[ANNOTATION_METHODS] = json.dumps(methods_of(values))
    spec = {"values": merge_diff(values, with_methods(values, []))}
    await patch_chart(context.client, chart, spec=spec, annotations=annotations)


async def updates_suspended(context: ToolkitContext) -> str:
    """Return that the list is still emptied by this command."""
    chart = await read_chart(context.client, HARVESTER)
    if ANNOTATION_METHODS not in objects.annotations_of(chart):
        return ""
    return f"ManagedChart {objects.name(chart)}: workloadUpdateMethods of KubeVirt is not restored"


async def resume_updates(context: ToolkitContext) -> None:
    """Restore the recorded value, unless a user has set another value since then."""
    chart = await read_chart(context.client, HARVESTER)
    record = objects.annotations_of(chart).get(ANNOTATION_METHODS)
    if record is None:
        return
    values = _values(chart)
    spec: Object = {}
    annotations: Object = {ANNOTATION_METHODS: None}
    if methods_of(values) == []:
        spec = {"values": merge_diff(values, with_methods(values, _parsed(record)))}
        annotations |= generation_record(chart)
    await patch_chart(context.client, chart, spec=spec, annotations=annotations)


def methods_of(values: Object) -> Any:
    """Return the list of methods in the chart's values; None without a list."""
    found: Any = values
    for key in _PATH:
        found = found.get(key) if isinstance(found, dict) else None
    return found


def with_methods(values: Object, methods: list[str] | None) -> Object:
    """Return the chart's values with these methods; None removes the list, and mappings that become empty."""
    return _with(values, _PATH, methods)


def _with(values: Object, path: tuple[str, ...], methods: list[str] | None) -> Object:
    key, rest = path[0], path[1:]
    inner = values.get(key)
    new = _with(inner if isinstance(inner, dict) else {}, rest, methods) if rest else methods
    others = {name: value for name, value in values.items() if name != key}
    return others if new is None or new == {} else {**others, key: new}


def _parsed(record: str) -> list[str] | None:
    """Return the recorded list; None for an unreadable record, so that the chart's default applies."""
    try:
        found = json.loads(record)
    except ValueError:
        return None
    return found if isinstance(found, list) else None


def _values(chart: Object) -> Object:
    found = objects.spec(chart).get("values")
    return found if isinstance(found, dict) else {}
