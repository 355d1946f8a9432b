"""The initial objects of Harvester, Rancher and Longhorn."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from hack.cluster.seed_services import FLEET_AGENT_SYSTEM, FLEET_SYSTEM
from hack.cluster.templates import build
from upgrade_manager.api.keys import (
    CATTLE_SYSTEM,
    DEFAULT_NAMESPACE,
    FLEET_LOCAL,
    HARVESTER_SYSTEM,
    LONGHORN_SYSTEM,
    SETTING_SERVER_VERSION,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hack.scenario import Addon, Scenario
    from upgrade_manager.kube.objects import Object

_CHARTS = ("harvester", "harvester-crd", "rancher-monitoring-crd", "rancher-logging-crd")
_RANCHER_CHART = "108.0.0+up77.9.1"
#: As the installer of v1.7.1 brings it.
_KUBEOVN, _KUBEOVN_VERSION = "kubeovn-operator-crd", "1.14.10"


def namespaces(scenario: Scenario) -> list[Object]:
    """Build the namespaces."""
    names = [HARVESTER_SYSTEM, CATTLE_SYSTEM, FLEET_LOCAL, LONGHORN_SYSTEM]
    names += [FLEET_SYSTEM, FLEET_AGENT_SYSTEM] if scenario.services else []
    names += [addon.namespace for addon in scenario.addons]
    names += [machine.namespace for machine in scenario.vms.machines]
    unique = [name for name in dict.fromkeys(names) if name not in {DEFAULT_NAMESPACE, "kube-system"}]
    return [build("namespace", name=name) for name in unique]


def service_accounts() -> list[Object]:
    """Build the service accounts of Jobs."""
    places = ((HARVESTER_SYSTEM, "harvester"), (CATTLE_SYSTEM, "system-upgrade-controller"))
    return [build("service_account", name=name, namespace=place) for place, name in places]


def settings(scenario: Scenario) -> list[Object]:
    """Build Harvester's settings."""
    values = {SETTING_SERVER_VERSION: scenario.software.harvester, "upgrade-config": ""}
    found = [build("setting", name=name, value=value) for name, value in values.items()]
    return [*found, build("overcommit")] if scenario.services else found


def version(scenario: Scenario, iso_url: str) -> Object:
    """Build the Version of the release to upgrade to."""
    release = scenario.release
    checksum = hashlib.sha512(release.harvester.encode()).hexdigest()
    least = release.min_upgradable_version
    return build("version", name=release.harvester, iso_url=iso_url, checksum=checksum, min_upgradable_version=least)


def charts(scenario: Scenario, *, at: str) -> list[Object]:
    """Build Harvester's ManagedCharts."""
    number = scenario.software.harvester.removeprefix("v")
    versions = {"harvester": number, "harvester-crd": number}
    versions |= {_KUBEOVN: _KUBEOVN_VERSION} if scenario.services else {}
    names = dict.fromkeys((*_CHARTS, *versions))
    return [build("chart", name=name, version=versions.get(name, _RANCHER_CHART), at=at) for name in names]


def longhorn_settings(scenario: Scenario) -> list[Object]:
    """Build the setting that upgrades change, if the scenario has it."""
    value = scenario.replenishment_interval
    return [] if value is None else [build("longhorn_setting", value=value)]


def addon(given: Addon) -> Object:
    """Build an Addon in a final state."""
    status = "AddonDeploySuccessful" if given.enabled else ""
    return build(
        "addon",
        name=given.name,
        namespace=given.namespace,
        enabled=given.enabled,
        chart=given.chart or given.name,
        version=given.version,
        values=given.values,
        status=status,
    )


def api_endpoints(api_url: str, others: Iterable[str] = ()) -> Object:
    """Build the EndpointSlice of default/kubernetes, which lists the API servers.

    `others` are addresses of further servers, allowed only beside an address.
    """
    parts = urlsplit(api_url)
    host = parts.hostname or ""
    is_name = not host.replace(".", "").isdigit()
    hosts = [host] if is_name else [*dict.fromkeys((host, *others))]
    return build(
        "api_endpoints",
        address_type="FQDN" if is_name else "IPv4",
        endpoints=[{"addresses": [each], "conditions": {"ready": True}} for each in hosts],
        port=parts.port or 443,
    )
