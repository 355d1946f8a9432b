"""Checks the objects for Prometheus, where the cluster serves their kinds; catalogue.py lists them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import HARVESTER_SYSTEM, MANAGER
from upgrade_manager.cli.installation.row import Row, passed, skipped
from upgrade_manager.kube.resources import Resource

if TYPE_CHECKING:
    from upgrade_manager.cli.installation.cluster import Cluster

_GROUP, _VERSION = "monitoring.coreos.com", "v1"
SERVICE_MONITORS = Resource(group=_GROUP, version=_VERSION, plural="servicemonitors", kind="ServiceMonitor")
PROMETHEUS_RULES = Resource(group=_GROUP, version=_VERSION, plural="prometheusrules", kind="PrometheusRule")


async def check_service_monitor(cluster: Cluster) -> Row:
    """Check that Prometheus scrapes the manager."""
    return await _check(cluster, SERVICE_MONITORS, "Prometheus does not scrape the manager", "serviceMonitor")


async def check_rule(cluster: Cluster) -> Row:
    """Check that Prometheus has the alerts."""
    return await _check(cluster, PROMETHEUS_RULES, "Prometheus has no alerts about upgrades", "prometheusRule")


async def _check(cluster: Cluster, resource: Resource, without: str, value: str) -> Row:
    """Return the row of an object that is optional."""
    if resource.plural not in await cluster.client.served(_GROUP, _VERSION):
        return skipped(resource.kind, f"The cluster does not serve {resource.name}.")
    if await cluster.client.find(resource, MANAGER, namespace=HARVESTER_SYSTEM) is not None:
        return passed(resource.kind)
    install = f"helm upgrade {MANAGER} deploy/chart -n {HARVESTER_SYSTEM} --reuse-values --set {value}.enabled=true"
    return skipped(resource.kind, f"{resource.kind} {HARVESTER_SYSTEM}/{MANAGER} does not exist: {without}.", install)
