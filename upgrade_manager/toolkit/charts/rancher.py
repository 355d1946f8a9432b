"""The upgrade of Rancher, and of the charts that Rancher installs itself.

The command cluster_upgrade runs these steps; rancher_chart.py finds the chart, rancher_values.py has its values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from upgrade_manager.api.keys import CATTLE_SYSTEM, FLEET_LOCAL, PROVISIONING_CLUSTER
from upgrade_manager.facts.rancher_cluster import not_ready
from upgrade_manager.kube.resources import DEPLOYMENTS, PROVISIONING_CLUSTERS
from upgrade_manager.toolkit.charts.chart_repository import refresh
from upgrade_manager.toolkit.charts.cluster_resources import RANCHER_SETTINGS
from upgrade_manager.toolkit.charts.helm import Release
from upgrade_manager.toolkit.charts.helm_releases import is_pending, release_missing, remove_interrupted
from upgrade_manager.toolkit.charts.rancher_chart import rancher_chart
from upgrade_manager.toolkit.charts.rancher_values import with_rows
from upgrade_manager.toolkit.charts.rollouts import deployment_missing
from upgrade_manager.toolkit.run.errors import ProgramFailed

if TYPE_CHECKING:
    from pathlib import Path

    from upgrade_manager.toolkit.iso.component_versions import ChartVersion
    from upgrade_manager.toolkit.run.context import ToolkitContext

RANCHER = Release(name="rancher", namespace=CATTLE_SYSTEM)
_FLEET_SYSTEM = "cattle-fleet-system"
FLEET = Release(name="fleet", namespace=_FLEET_SYSTEM)
FLEET_CRD = Release(name="fleet-crd", namespace=_FLEET_SYSTEM)
RANCHER_WEBHOOK = Release(name="rancher-webhook", namespace=CATTLE_SYSTEM)
_SERVER_VERSION = "server-version"
#: Rancher's repository with the charts of its dependencies.
_CHARTS = "rancher-charts"
#: The installer pins this image of the previous release by an environment variable, which overrides Rancher's setting.
_PINNED = "CATTLE_SHELL_IMAGE"


async def rancher_missing(context: ToolkitContext) -> str:
    """Return the reason why Rancher's Helm release is not upgraded; empty once it is."""
    version = (await context.release.components()).rancher
    missing = await release_missing(context, RANCHER, chart=f"rancher-{version.removeprefix('v')}")
    return missing or await _values_missing(context)


async def _values_missing(context: ToolkitContext) -> str:
    """Return the values that belong to the previous release."""
    values = await context.helm.values(RANCHER)
    changed = await with_rows(context, values)
    names = [name for name, value in values.items() if changed.get(name) != value]
    return f"{RANCHER} has the previous release's values: {', '.join(names)}" if names else ""


async def upgrade_rancher(context: ToolkitContext) -> None:
    """Upgrade the release with the values that it has, changed by the rows; returns early while another helm does."""
    await remove_interrupted(context, RANCHER)
    if await is_pending(context, RANCHER):
        return
    chart = await rancher_chart(context)
    values = await with_rows(context, await context.helm.values(RANCHER))
    file = _write(context.folder / "rancher-values.yaml", with_version(values, await _version(context)))
    try:
        await context.helm.upgrade(RANCHER, chart=chart, values=file)
    except ProgramFailed:
        # If helm failed because the API server is away, this request raises an error after which the step is retried.
        await context.client.get(DEPLOYMENTS, RANCHER.name, namespace=RANCHER.namespace)
        raise


def with_version(values: dict[str, Any], version: str) -> dict[str, Any]:
    """Return the values with the images of this version; all other values stay unchanged."""
    changed = dict(values)
    if "rancherImageTag" in values:
        changed["rancherImageTag"] = version
    image = values.get("image")
    if isinstance(image, dict) and "tag" in image:
        changed["image"] = {**image, "tag": version}
    variables = values.get("extraEnv")
    if isinstance(variables, list):
        changed["extraEnv"] = [one for one in variables if not isinstance(one, dict) or one.get("name") != _PINNED]
    return changed


def _write(path: Path, values: dict[str, Any]) -> Path:
    """Write the values, which contain the bootstrap password, for this user only."""
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(values), encoding="utf-8")
    return path


async def rancher_not_running(context: ToolkitContext) -> str:
    """Return the reason why Rancher does not run in the release's version, or why its cluster is not ready."""
    missing = await deployment_missing(context.client, RANCHER.name, namespace=RANCHER.namespace)
    if missing:
        return missing
    version = await _version(context)
    setting = await context.client.find(RANCHER_SETTINGS, _SERVER_VERSION)
    if setting is None:
        return f"Rancher's Setting {_SERVER_VERSION} does not exist"
    running = setting.get("value") or setting.get("default") or "unknown"
    if running != version:
        return f"Rancher reports version {running} instead of {version}"
    cluster = await context.client.get(PROVISIONING_CLUSTERS, PROVISIONING_CLUSTER, namespace=FLEET_LOCAL)
    return not_ready(cluster)


async def dependencies_missing(context: ToolkitContext) -> str:
    """Return the first chart that Rancher has not upgraded, and the first workload that is not rolled out."""
    for release, chart in await _dependencies(context):
        name = f"{release.name}-{chart.chart}"
        missing = await release_missing(context, release, chart=name, app_version=chart.app)
        if missing:
            return missing
    for name, namespace in (("fleet-controller", _FLEET_SYSTEM), (RANCHER_WEBHOOK.name, CATTLE_SYSTEM)):
        missing = await deployment_missing(context.client, name, namespace=namespace)
        if missing:
            return missing
    return ""


async def help_dependencies(context: ToolkitContext) -> None:
    """Let Rancher read its charts again, and remove revisions that block its upgrades.

    Rancher itself upgrades these releases: Rancher would revert the work of another helm, and only Rancher's image has
    the charts.
    """
    await refresh(context.client, _CHARTS, reason=f"rancher-{await _version(context)}")
    for release, _ in await _dependencies(context):
        await remove_interrupted(context, release)


async def _dependencies(context: ToolkitContext) -> tuple[tuple[Release, ChartVersion], ...]:
    components = await context.release.components()
    return (
        (FLEET_CRD, components.fleet_crd),
        (FLEET, components.fleet),
        (RANCHER_WEBHOOK, components.rancher_webhook),
    )


async def _version(context: ToolkitContext) -> str:
    return (await context.release.components()).rancher
