"""The versions of Rancher's and Harvester's charts in a release, for the upgrade of the cluster's components."""

from __future__ import annotations

from dataclasses import dataclass

from upgrade_manager.release.errors import BadRepository
from upgrade_manager.release.release_file import IMAGE, VERSION, parse_values
from upgrade_manager.toolkit.run.errors import BadArchive

#: Charts that Rancher installs itself.
_DEPENDENCIES = ("fleet", "fleet-crd", "rancher-webhook")
_REQUIRED = (
    "harvester",
    "harvesterChart",
    "rancher",
    "monitoringChart",
    "loggingChart",
    "kubevirt",
    *(f"rancherDependencies.{name}.{part}" for name in _DEPENDENCIES for part in ("chart", "app")),
)
_EVENT_ROUTER = "loggingChartHarvesterEventRouter"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartVersion:
    """The version of a Helm chart, and the version of the software in the chart."""

    chart: str
    app: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Components:
    """The components of the release, with their versions."""

    harvester: str
    #: The version of the charts harvester and harvester-crd.
    harvester_chart: str
    rancher: str
    monitoring_chart: str
    logging_chart: str
    kubevirt: str
    fleet: ChartVersion
    fleet_crd: ChartVersion
    rancher_webhook: ChartVersion
    #: The image of the event router in the logging add-on; empty where the release names none.
    event_router: str


def parse_components(body: bytes, *, where: str) -> Components:
    """Parse harvester-release.yaml. Raises BadArchive, which names all keys that are missing or invalid."""
    patterns = dict.fromkeys(_REQUIRED, VERSION) | {_EVENT_ROUTER: IMAGE}
    try:
        found = parse_values(body, patterns, required=_REQUIRED, where=where)
    except BadRepository as error:
        raise BadArchive(str(error)) from error
    return Components(
        harvester=found["harvester"],
        harvester_chart=found["harvesterChart"],
        rancher=found["rancher"],
        monitoring_chart=found["monitoringChart"],
        logging_chart=found["loggingChart"],
        kubevirt=found["kubevirt"],
        fleet=_dependency(found, "fleet"),
        fleet_crd=_dependency(found, "fleet-crd"),
        rancher_webhook=_dependency(found, "rancher-webhook"),
        event_router=found.get(_EVENT_ROUTER, ""),
    )


def _dependency(found: dict[str, str], name: str) -> ChartVersion:
    prefix = f"rancherDependencies.{name}"
    return ChartVersion(chart=found[f"{prefix}.chart"], app=found[f"{prefix}.app"])
