"""`cluster-upgrade`: upgrades Rancher, then Harvester's charts, and waits for the services that they deploy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.release.migrations import generic
from upgrade_manager.release.migrations import v1_7_to_v1_8 as pair
from upgrade_manager.release.migrations import v1_8_to_v1_9 as provisional
from upgrade_manager.toolkit.charts.addons import (
    addons_not_deployed,
    addons_outdated,
    report_not_deployed,
    upgrade_addons,
)
from upgrade_manager.toolkit.charts.administrated_cluster import annotate_cluster, cluster_not_annotated
from upgrade_manager.toolkit.charts.aggregation_secret import create_secret, secret_missing
from upgrade_manager.toolkit.charts.capi_cluster import cluster_not_provisioned
from upgrade_manager.toolkit.charts.capi_webhooks import remove_webhooks, webhooks_left
from upgrade_manager.toolkit.charts.cdi_crd import apply_definition, definition_outdated
from upgrade_manager.toolkit.charts.chart_repository import (
    index_missing,
    refresh_index,
    repository_missing,
    upgrade_repository,
)
from upgrade_manager.toolkit.charts.fleet_address import (
    address_changed,
    address_not_recorded,
    record_address,
    record_left,
    remove_record,
    restore_address,
)
from upgrade_manager.toolkit.charts.fleet_agent import agent_outdated, fleet_not_ready, redeploy_agent
from upgrade_manager.toolkit.charts.instance_managers import instance_managers_missing
from upgrade_manager.toolkit.charts.internal_certificate import name_services, services_not_named
from upgrade_manager.toolkit.charts.managed_charts import (
    HARVESTER,
    HARVESTER_CRD,
    KUBEOVN_CRD,
    LOGGING_CRD,
    MONITORING_CRD,
    chart_missing,
    charts_not_paused,
    charts_not_settled,
    charts_paused,
    pause_charts,
    remove_records,
    unpause_charts,
    upgrade_chart,
)
from upgrade_manager.toolkit.charts.multus import abort_not_set, set_abort
from upgrade_manager.toolkit.charts.overcommit import (
    overcommit_not_pinned,
    pin_overcommit,
    pin_recorded,
    settle_pin,
)
from upgrade_manager.toolkit.charts.rancher import (
    dependencies_missing,
    help_dependencies,
    rancher_missing,
    rancher_not_running,
    upgrade_rancher,
)
from upgrade_manager.toolkit.charts.rancher_features import features_not_accepted
from upgrade_manager.toolkit.charts.system_services import harvester_missing, kubevirt_missing, longhorn_missing
from upgrade_manager.toolkit.charts.traefik import create_values, values_missing
from upgrade_manager.toolkit.iso.repository_wait import WAIT_FOR_CLUSTER_RELEASE
from upgrade_manager.toolkit.run.steps import Action, Check, Step

if TYPE_CHECKING:
    from upgrade_manager.release.migrations.row import Row

_HOUR = 3600


def _chart(step: str, name: str, *, timeout: float, row: Row | None = None) -> Step:
    return Step(name=step, timeout=timeout, missing=chart_missing(name), act=upgrade_chart(name), row=row)


def _change(step: str, row: Row, missing: Check, act: Action) -> Step:
    """Return the step of a row that changes an object or two."""
    return Step(name=step, timeout=1800, missing=missing, act=act, row=row)


STEPS = (
    WAIT_FOR_CLUSTER_RELEASE,
    _change("keep-multus", generic.MULTUS, abort_not_set, set_abort),
    _change("pin-overcommit-config", pair.OVERCOMMIT, overcommit_not_pinned, pin_overcommit),
    _change("allow-internal-names", provisional.INTERNAL_CERTIFICATE, services_not_named, name_services),
    _change("annotate-local-cluster", provisional.ADMINISTRATED_CLUSTER, cluster_not_annotated, annotate_cluster),
    Step(name="pause-charts", timeout=1800, missing=charts_not_paused, act=pause_charts),
    _change("remove-capi-webhooks", pair.CAPI_WEBHOOKS, webhooks_left, remove_webhooks),
    _change("record-fleet-address", generic.FLEET, address_not_recorded, record_address),
    Step(name="settle-cluster-before-rancher", timeout=1800, missing=cluster_not_provisioned, lasts=30),
    Step(name="upgrade-rancher", timeout=2 * _HOUR, missing=rancher_missing, act=upgrade_rancher, repeats=True),
    Step(name="wait-for-rancher", timeout=_HOUR, missing=rancher_not_running),
    Step(name="check-rancher-features", timeout=600, missing=features_not_accepted),
    _change("create-aggregation-secret", pair.AGGREGATION_SECRET, secret_missing, create_secret),
    _change("create-traefik-values", provisional.TRAEFIK_CHART, values_missing, create_values),
    Step(
        name="wait-for-rancher-dependencies",
        timeout=_HOUR,
        missing=dependencies_missing,
        act=help_dependencies,
        repeats=True,
        poll=10,
    ),
    Step(name="settle-cluster-after-rancher", timeout=1800, missing=cluster_not_provisioned),
    _change("restore-fleet-address", generic.FLEET, address_changed, restore_address),
    Step(
        name="redeploy-fleet-agent",
        timeout=1800,
        missing=agent_outdated,
        act=redeploy_agent,
        lasts=20,
        row=generic.FLEET,
    ),
    _change("remove-fleet-record", generic.FLEET, record_left, remove_record),
    Step(name="wait-for-fleet", timeout=60, missing=fleet_not_ready, optional=True),
    Step(name="upgrade-chart-repository", timeout=1800, missing=repository_missing, act=upgrade_repository),
    Step(name="refresh-chart-index", timeout=1800, missing=index_missing, act=refresh_index),
    _change("apply-cdi-definition", generic.CDI, definition_outdated, apply_definition),
    _chart("upgrade-harvester-crd", HARVESTER_CRD, timeout=1800),
    _chart("upgrade-harvester", HARVESTER, timeout=2 * _HOUR),
    Step(name="wait-for-kubevirt", timeout=_HOUR, missing=kubevirt_missing),
    Step(name="wait-for-longhorn", timeout=_HOUR, missing=longhorn_missing),
    Step(name="wait-for-instance-managers", timeout=_HOUR, missing=instance_managers_missing),
    Step(name="wait-for-harvester", timeout=1800, missing=harvester_missing),
    _chart("upgrade-monitoring-crd", MONITORING_CRD, timeout=1800),
    _chart("upgrade-logging-crd", LOGGING_CRD, timeout=1800),
    _chart("upgrade-kubeovn-crd", KUBEOVN_CRD, timeout=1800, row=generic.KUBEOVN),
    _change("upgrade-addons", generic.ADDONS, addons_outdated, upgrade_addons),
    # An add-on whose Pods do not run does not hold up the nodes: it may have been broken before the upgrade.
    Step(
        name="wait-for-addons",
        timeout=1200,
        missing=addons_not_deployed,
        optional=True,
        failed=report_not_deployed,
        row=generic.ADDONS,
    ),
    Step(name="settle-charts", timeout=1800, missing=charts_not_settled, act=remove_records, repeats=True),
    # Before Harvester's upgrade began, a failure gives the pin up.
    Step(name="settle-overcommit-config", timeout=1800, missing=pin_recorded, act=settle_pin, always=True),
    Step(name="unpause-charts", timeout=1800, missing=charts_paused, act=unpause_charts, always=True),
)
