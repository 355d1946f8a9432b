"""Rancher's ManagedCharts of Harvester: paused during the upgrade, and upgraded one after the other.

The command cluster_upgrade runs these steps, and resumes the charts after a failure.

Each patch of a chart also records the changed fields in annotations, from which a killed command continues.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import FLEET_LOCAL, PREFIX
from upgrade_manager.facts.managed_charts import named, not_ready, pause_hint
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import KubeError, NotFound
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import MANAGED_CHARTS
from upgrade_manager.toolkit.run.errors import StepFailed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.toolkit.iso.component_versions import Components
    from upgrade_manager.toolkit.run.context import ToolkitContext

HARVESTER = "harvester"
HARVESTER_CRD = "harvester-crd"
MONITORING_CRD = "rancher-monitoring-crd"
LOGGING_CRD = "rancher-logging-crd"
#: The chart of Kube-OVN's CRDs, which not every cluster has; only the new chart repository's index names its version.
KUBEOVN_CRD = "kubeovn-operator-crd"
UPGRADED = (HARVESTER_CRD, HARVESTER, MONITORING_CRD, LOGGING_CRD)

#: spec.paused before this command changed it: "true" or "false".
ANNOTATION_PAUSED = f"{PREFIX}/original-paused"
#: status.observedGeneration, which is the generation of Fleet's Bundle, before the change; the status is stale until
#: the number grows.
ANNOTATION_GENERATION = f"{PREFIX}/generation-before-upgrade"
_DEFAULT_TIMEOUT = 600


async def read_chart(client: Client, name: str) -> Object:
    """Return the chart. Raises StepFailed if it does not exist."""
    try:
        return await client.get(MANAGED_CHARTS, name, namespace=FLEET_LOCAL)
    except NotFound as error:
        raise StepFailed(f"ManagedChart {FLEET_LOCAL}/{name} does not exist; is this a Harvester cluster?") from error


async def _read(client: Client, name: str) -> Object | None:
    """Return the chart; None only for that of Kube-OVN where it does not exist."""
    if name == KUBEOVN_CRD:
        return await client.find(MANAGED_CHARTS, name, namespace=FLEET_LOCAL)
    return await read_chart(client, name)


async def patch_chart(client: Client, chart: Object, *, spec: Object, annotations: Object) -> None:
    """Patch the chart. Raises Conflict if the chart has changed since it was read."""
    body = {"metadata": {"annotations": annotations}, **({"spec": spec} if spec else {})}
    patch = MergePatch(body).at(objects.resource_version(chart))
    await client.patch(MANAGED_CHARTS, objects.name(chart), patch, namespace=FLEET_LOCAL)


def target_version(components: Components, name: str) -> str:
    """Return the version of a chart that the release names."""
    versions = {MONITORING_CRD: components.monitoring_chart, LOGGING_CRD: components.logging_chart}
    return versions.get(name, components.harvester_chart)


async def _target_version(context: ToolkitContext, name: str) -> str:
    """Return the chart's version in the release; that of Kube-OVN is known once the chart repository is upgraded."""
    if name == KUBEOVN_CRD:
        return await context.charts.version(name)
    return target_version(await context.release.components(), name)


def without_effect(chart: Object, version: str) -> str:
    """Return the reason why Fleet has not deployed this version of the chart; empty once it is deployed."""
    about = named(chart)
    if objects.spec(chart).get("version") != version:
        return f"{about} has version {objects.spec(chart).get('version')} instead of {version}"
    status = objects.status(chart)
    before = objects.annotations_of(chart).get(ANNOTATION_GENERATION)
    if before is not None and int(status.get("observedGeneration") or 0) <= int(before):
        return f"{about}: Fleet has not deployed version {version} yet{pause_hint(chart)}"
    summary = status.get("summary") or {}
    if objects.is_condition_true(chart, "Ready") and summary.get("ready") == summary.get("desiredReady"):
        return ""
    return f"{about} {version} is not ready: {not_ready(chart)}"


# Pausing


async def charts_not_paused(context: ToolkitContext) -> str:
    """Return the charts that Fleet may still change."""
    names = [f"{FLEET_LOCAL}/{objects.name(chart)}" for chart in await _to_pause(context)]
    return f"ManagedCharts {', '.join(names)} are not paused" if names else ""


async def pause_charts(context: ToolkitContext) -> None:
    """Pause the charts, and record the charts that a user had paused. An older record is kept."""
    for chart in await _to_pause(context):
        original = "true" if objects.spec(chart).get("paused") else "false"
        record = objects.annotations_of(chart).get(ANNOTATION_PAUSED, original)
        await patch_chart(context.client, chart, spec={"paused": True}, annotations={ANNOTATION_PAUSED: record})


async def _to_pause(context: ToolkitContext) -> list[Object]:
    """Return the charts to pause, without charts that have the release's version.

    That of Kube-OVN is upgraded after Harvester's, and paused together with it: its version is not known yet.
    """
    components = await context.release.components()
    charts = [await read_chart(context.client, name) for name in UPGRADED]
    charts = [
        one for one in charts if objects.spec(one).get("version") != target_version(components, objects.name(one))
    ]
    if any(objects.name(chart) == HARVESTER for chart in charts):
        charts += [chart for chart in await _all(context.client) if objects.name(chart) == KUBEOVN_CRD]
    return [
        chart
        for chart in charts
        if not (objects.spec(chart).get("paused") and ANNOTATION_PAUSED in objects.annotations_of(chart))
    ]


async def charts_paused(context: ToolkitContext) -> str:
    """Return the charts that this command has paused and not resumed."""
    names = [f"{FLEET_LOCAL}/{objects.name(chart)}" for chart in await _recorded(context.client)]
    return f"ManagedCharts {', '.join(names)} are not resumed" if names else ""


async def unpause_charts(context: ToolkitContext) -> None:
    """Restore spec.paused of every chart, also after the failure of a chart. Raises the last KubeError."""
    failure: KubeError | None = None
    for chart in await _recorded(context.client):
        original = objects.annotations_of(chart)[ANNOTATION_PAUSED] == "true"
        try:
            await patch_chart(context.client, chart, spec={"paused": original}, annotations={ANNOTATION_PAUSED: None})
        except KubeError as error:
            failure = error
    if failure is not None:
        raise failure


async def _recorded(client: Client) -> list[Object]:
    return [chart for chart in await _all(client) if ANNOTATION_PAUSED in objects.annotations_of(chart)]


async def _all(client: Client) -> list[Object]:
    return (await client.list(MANAGED_CHARTS, namespace=FLEET_LOCAL)).items


# Upgrading


def chart_missing(name: str) -> Callable[[ToolkitContext], Awaitable[str]]:
    """Return the check of a step that upgrades this chart."""

    async def missing(context: ToolkitContext) -> str:
        chart = await _read(context.client, name)
        return without_effect(chart, await _target_version(context, name)) if chart is not None else ""

    return missing


async def upgrade_has_begun(context: ToolkitContext) -> bool:
    """Return True once Harvester's chart has the release's version, and the new Harvester may start."""
    chart = await read_chart(context.client, HARVESTER)
    return objects.spec(chart).get("version") == await _target_version(context, HARVESTER)


def upgrade_chart(name: str) -> Callable[[ToolkitContext], Awaitable[None]]:
    """Return the action of a step that upgrades this chart."""

    async def act(context: ToolkitContext) -> None:
        chart = await _read(context.client, name)
        version = await _target_version(context, name) if chart is not None else ""
        if chart is None or objects.spec(chart).get("version") == version:
            return
        # Without another value the Bundle may stay equal, and observedGeneration would never grow.
        timeout = int(objects.spec(chart).get("timeoutSeconds") or _DEFAULT_TIMEOUT) + 1
        spec = {"version": version, "timeoutSeconds": timeout, "paused": False}
        await patch_chart(context.client, chart, spec=spec, annotations=generation_record(chart))

    return act


def generation_record(chart: Object) -> Object:
    """Return the annotation that marks the chart's present status as stale."""
    return {ANNOTATION_GENERATION: str(objects.status(chart).get("observedGeneration") or 0)}


async def charts_not_settled(context: ToolkitContext) -> str:
    """Return the charts that are not deployed after all changes, and the charts with a record."""
    for chart, version in await _settling(context):
        missing = without_effect(chart, version)
        if not missing and ANNOTATION_GENERATION in objects.annotations_of(chart):
            missing = f"{named(chart)} has the annotation {ANNOTATION_GENERATION}"
        if missing:
            return missing
    return ""


async def remove_records(context: ToolkitContext) -> None:
    """Remove the recorded generation of each chart that is deployed."""
    for chart, version in await _settling(context):
        recorded = ANNOTATION_GENERATION in objects.annotations_of(chart)
        if recorded and not without_effect(chart, version):
            await patch_chart(context.client, chart, spec={}, annotations={ANNOTATION_GENERATION: None})


async def _settling(context: ToolkitContext) -> list[tuple[Object, str]]:
    """Return the charts with their versions in the release."""
    charts = [(name, await _read(context.client, name)) for name in (*UPGRADED, KUBEOVN_CRD)]
    return [(chart, await _target_version(context, name)) for name, chart in charts if chart is not None]
