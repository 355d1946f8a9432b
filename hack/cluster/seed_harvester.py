"""The initial objects of Harvester, Rancher and Longhorn."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from hack.cluster.seed_services import FLEET_SYSTEM
from upgrade_manager.api.keys import (
    ANNOTATION_OS_UPGRADE_IMAGE,
    ANNOTATION_STORAGE_CLASS,
    CATTLE_SYSTEM,
    DEFAULT_NAMESPACE,
    FLEET_LOCAL,
    HARVESTER_SYSTEM,
    IMAGE_STORAGE_CLASS,
    LABEL_IMAGE_DISPLAY_NAME,
    LABEL_SERVICE_NAME,
    LONGHORN_REPLENISHMENT_SETTING,
    LONGHORN_SYSTEM,
    OS_UPGRADE_IMAGE_VALUE,
    PROVISIONING_CLUSTER,
    SETTING_SERVER_VERSION,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hack.scenario import Addon, Scenario
    from upgrade_manager.kube.objects import Object

_CHARTS = ("harvester", "harvester-crd", "rancher-monitoring-crd", "rancher-logging-crd")
_SIZE = 6912345088


def namespaces(scenario: Scenario) -> list[Object]:
    """Build the namespaces."""
    names = [HARVESTER_SYSTEM, CATTLE_SYSTEM, FLEET_LOCAL, LONGHORN_SYSTEM]
    names += [FLEET_SYSTEM] if scenario.services else []
    names += [addon.namespace for addon in scenario.addons]
    names += [machine.namespace for machine in scenario.vms.machines]
    unique = [name for name in dict.fromkeys(names) if name not in {DEFAULT_NAMESPACE, "kube-system"}]
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in unique]


def service_accounts() -> list[Object]:
    """Build the service accounts of Jobs."""
    places = ((HARVESTER_SYSTEM, "harvester"), (CATTLE_SYSTEM, "system-upgrade-controller"))
    return [_object("v1", "ServiceAccount", name, place) for place, name in places]


def settings(scenario: Scenario) -> list[Object]:
    """Build Harvester's settings."""
    values = {SETTING_SERVER_VERSION: scenario.software.harvester, "upgrade-config": ""}
    return [{**_object("harvesterhci.io/v1beta1", "Setting", name), "value": value} for name, value in values.items()]


def version(scenario: Scenario, iso_url: str) -> Object:
    """Build the Version of the release to upgrade to."""
    release = scenario.release
    return {
        **_object("harvesterhci.io/v1beta1", "Version", release.harvester, HARVESTER_SYSTEM),
        "spec": {
            "isoURL": iso_url,
            "isoChecksum": hashlib.sha512(release.harvester.encode()).hexdigest(),
            "releaseDate": "20260401",
            "minUpgradableVersion": release.min_upgradable_version,
            "tags": [],
        },
    }


def image(scenario: Scenario, iso_url: str, *, at: str) -> Object:
    """Build the image of the same ISO, imported by an administrator beforehand."""
    name = f"harvester-{scenario.release.harvester}"
    annotations = {
        ANNOTATION_OS_UPGRADE_IMAGE: OS_UPGRADE_IMAGE_VALUE,
        ANNOTATION_STORAGE_CLASS: IMAGE_STORAGE_CLASS,
    }
    obj = _object("harvesterhci.io/v1beta1", "VirtualMachineImage", name, HARVESTER_SYSTEM)
    obj["metadata"] |= {"annotations": annotations, "labels": {LABEL_IMAGE_DISPLAY_NAME: name}}
    done = [{"type": type_, "status": "True", "lastUpdateTime": at} for type_ in ("Initialized", "Imported")]
    obj["spec"] = {
        "backend": "cdi",
        "displayName": name,
        "sourceType": "download",
        "url": iso_url,
        "checksum": "",
        "retry": 3,
        "targetStorageClassName": IMAGE_STORAGE_CLASS,
    }
    obj["status"] = {
        "progress": 100,
        "size": _SIZE,
        "virtualSize": _SIZE,
        "failed": 0,
        "appliedUrl": iso_url,
        "storageClassName": IMAGE_STORAGE_CLASS,
        "targetStorageClassName": IMAGE_STORAGE_CLASS,
        "conditions": done,
    }
    return obj


def provisioning_cluster(scenario: Scenario, *, at: str) -> Object:
    """Build Rancher's provisioning cluster, with an administrator's configuration."""
    conditions = [{"type": type_, "status": "True", "lastUpdateTime": at} for type_ in ("Ready", "Updated")]
    return {
        **_object("provisioning.cattle.io/v1", "Cluster", PROVISIONING_CLUSTER, FLEET_LOCAL),
        "spec": {
            "kubernetesVersion": scenario.software.kubernetes,
            "rkeConfig": {
                "provisionGeneration": 3,
                "registries": {"mirrors": {"docker.io": {"endpoint": ["https://mirror.example.com"]}}},
            },
        },
        "status": {
            "ready": True,
            "observedGeneration": 1,
            "agentDeployed": True,
            "clusterName": PROVISIONING_CLUSTER,
            "fleetWorkspaceName": FLEET_LOCAL,
            "conditions": conditions,
        },
    }


def capi_cluster() -> Object:
    """Build the Cluster API cluster."""
    return {
        **_object("cluster.x-k8s.io/v1beta1", "Cluster", PROVISIONING_CLUSTER, FLEET_LOCAL),
        "spec": {},
        "status": {"phase": "Provisioned", "infrastructureReady": True, "controlPlaneReady": True},
    }


def charts(scenario: Scenario, *, at: str) -> list[Object]:
    """Build Harvester's ManagedCharts."""
    number = scenario.software.harvester.removeprefix("v")
    versions = {"harvester": number, "harvester-crd": number}
    conditions = [{"type": type_, "status": "True", "lastUpdateTime": at} for type_ in ("Ready", "Defined")]
    return [
        {
            **_object("management.cattle.io/v3", "ManagedChart", name, FLEET_LOCAL),
            "spec": {
                "chart": name,
                "repoName": "harvester-charts",
                "releaseName": name,
                "version": versions.get(name, "108.0.0+up77.9.1"),
                "defaultNamespace": HARVESTER_SYSTEM,
                "timeoutSeconds": 600,
                "paused": False,
            },
            "status": {
                "observedGeneration": 12,
                "conditions": conditions,
                "summary": {"ready": 1, "desiredReady": 1},
                "display": {"readyClusters": "1/1"},
            },
        }
        for name in _CHARTS
    ]


def longhorn_settings(scenario: Scenario) -> list[Object]:
    """Build the setting that upgrades change, if the scenario has it."""
    value = scenario.replenishment_interval
    if value is None:
        return []
    obj = _object("longhorn.io/v1beta2", "Setting", LONGHORN_REPLENISHMENT_SETTING, LONGHORN_SYSTEM)
    return [{**obj, "value": value, "status": {"applied": True}}]


def addon(given: Addon) -> Object:
    """Build an Addon in a final state."""
    return {
        **_object("harvesterhci.io/v1beta1", "Addon", given.name, given.namespace),
        "spec": {
            "enabled": given.enabled,
            "repo": "http://harvester-cluster-repo.cattle-system.svc/charts",
            "chart": given.name,
            "version": "1.0.0",
            "valuesContent": "",
        },
        "status": {"status": "AddonDeploySuccessful" if given.enabled else ""},
    }


def kubevirt() -> Object:
    """Build KubeVirt as Harvester's chart configures it."""
    return {
        **_object("kubevirt.io/v1", "KubeVirt", "kubevirt", HARVESTER_SYSTEM),
        "spec": {"workloadUpdateStrategy": {"workloadUpdateMethods": ["LiveMigrate"]}},
        "status": {"phase": "Deployed", "observedKubeVirtVersion": "v1.6.2"},
    }


def api_endpoints(api_url: str, others: Iterable[str] = ()) -> Object:
    """Build the EndpointSlice of default/kubernetes, which lists the API servers.

    `others` are addresses of further servers, allowed only beside an address.
    """
    parts = urlsplit(api_url)
    host = parts.hostname or ""
    is_name = not host.replace(".", "").isdigit()
    hosts = [host] if is_name else [*dict.fromkeys((host, *others))]
    obj = _object("discovery.k8s.io/v1", "EndpointSlice", "kubernetes", DEFAULT_NAMESPACE)
    obj["metadata"]["labels"] = {LABEL_SERVICE_NAME: "kubernetes"}
    return {
        **obj,
        "addressType": "FQDN" if is_name else "IPv4",
        "endpoints": [{"addresses": [each], "conditions": {"ready": True}} for each in hosts],
        "ports": [{"name": "https", "port": parts.port or 443, "protocol": "TCP"}],
    }


def _object(api_version: str, kind: str, name: str, namespace: str = "") -> Object:
    metadata: Object = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}
