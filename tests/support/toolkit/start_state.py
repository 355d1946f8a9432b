"""The state of a cluster and of its hosts before an upgrade from v1.7.1, for the listings in tests/golden/writes.

The seeds of hack/cluster have the objects without which nothing runs. Here is the rest of what Harvester's own upgrade
to v1.8.0 reads or writes (harvester/harvester v1.8.0: package/upgrade/upgrade_manifests.sh, lib.sh, upgrade_node.sh),
as v1.7.1's installer leaves it (harvester/harvester-installer v1.7.1: pkg/config/templates, pkg/util/util.go:556), or
v1.7.1's upgrade from v1.6 (harvester/harvester v1.7.1: package/upgrade). What is guessed says so.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hack.host import rke2_manifests
from hack.host.network import add_card, mac, set_arguments
from tests.support.cluster.vm_world import vm_world
from tests.support.toolkit.cluster_upgrade import NVIDIA_VALUES, services
from tests.support.toolkit.os_upgrade import os_iso
from tests.support.toolkit.prepare import iso as prepare_iso
from tests.support.toolkit.toolkit import PLAN
from upgrade_manager.api.keys import HARVESTER_SYSTEM, KUBE_SYSTEM
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import (
    MANAGED_CHARTS,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    NODES,
    PROVISIONING_CLUSTERS,
    SECRETS,
    SETTINGS,
    UPGRADE_PLANS,
)
from upgrade_manager.toolkit.charts.cluster_resources import CLUSTER_REPOS, HELM_CHART_CONFIGS, RANCHER_SETTINGS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from hack.scenario import Scenario
    from tests.support.toolkit.toolkit import ToolkitWorld
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.resources import Resource

MONITORING_VALUES = """\
# less history
prometheus:
  prometheusSpec:
    retention: 2d
rancherMonitoring:
  enabled: false
kube-state-metrics:
  metricLabelsAllowlist:
  - nodes=[*]
"""
LOGGING_VALUES = """\
fluentd:
  resources: {limits: {memory: 2Gi}}   # more logs than usual
eventTailer:
  workloadOverrides:
    containers:
    - image: rancher/harvester-eventrouter:v0.3.4
      name: event-tailer
"""


def _values(tag: str, name: str, more: str = "") -> str:
    return f"image:\n  tag: {tag}\nfullnameOverride: {name}\n{more}"


def _addon(name: str, namespace: str, version: str, values: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "namespace": namespace, "version": version, "values": values, "enabled": False, **more}


#: All add-ons of v1.7.1, with values of users; the chart versions of the first two are guesses.
ADDONS = (
    _addon("rancher-monitoring", "cattle-monitoring-system", "108.0.0+up77.9.1", MONITORING_VALUES, enabled=True),
    _addon("rancher-logging", "cattle-logging-system", "108.0.0+up4.10.0", LOGGING_VALUES),
    _addon(
        "vm-import-controller",
        HARVESTER_SYSTEM,
        "1.7.1",
        _values("v1.7.1", "harvester-vm-import-controller", "resources: {limits: {memory: 1Gi}}  # many imports\n"),
        chart="harvester-vm-import-controller",
        enabled=True,
    ),
    _addon(
        "pcidevices-controller",
        HARVESTER_SYSTEM,
        "1.7.1",
        _values("v1.7.1", "harvester-pcidevices-controller"),
        chart="harvester-pcidevices-controller",
        enabled=True,
    ),
    _addon("harvester-seeder", HARVESTER_SYSTEM, "1.7.1", _values("v1.7.1", "harvester-seeder")),
    _addon("nvidia-driver-toolkit", HARVESTER_SYSTEM, "1.7.1", NVIDIA_VALUES, chart="nvidia-driver-runtime"),
    _addon("descheduler", KUBE_SYSTEM, "0.33.0", "deschedulerPolicy: {}\n"),
    _addon("kubeovn-operator", KUBE_SYSTEM, "1.14.10", "enableConfiguration: true\n"),
)
#: Values of the ManagedChart harvester: the list of KubeVirt's update methods is the chart's own.
_HARVESTER_VALUES = {
    "kubevirt": {"spec": {"monitorAccount": "rancher-monitoring-operator"}},
    "longhorn": {
        "defaultSettings": {
            "nodeDrainPolicy": "allow-if-replica-is-stopped",
            "detachManuallyAttachedVolumesWhenCordoned": True,
        }
    },
    "service": {"vip": {"enabled": True, "mode": "static", "ip": "192.168.0.131"}},
}
#: The charts of v1.8.0 in its harvester-release.yaml.
_CHARTS = {"monitoringChart": "108.0.2+up77.9.1-rancher.11", "loggingChart": "108.0.2+up4.10.0-rancher.18"}
_REPOSITORIES = ("rancher-rke2-charts", "rancher-partner-charts")


def scenario(*, nodes: dict[str, Any], without: tuple[str, ...] = ()) -> Scenario:
    """Return a cluster with all add-ons of v1.7.1 but those that a user has deleted."""
    addons = tuple(one for one in ADDONS if one["name"] not in without)
    # Slower than the polls, so that what helps a slow controller is written, too.
    durations = {"chart": 60, "addon": 80, "repository_start": 60}
    return services(nodes=nodes, addons=addons, durations=durations, release={"metadata": _CHARTS})


async def complete(client: Client) -> None:
    """Add the objects of an installation of v1.7.1 that the seeds lack."""
    for name in _REPOSITORIES:
        await client.create(CLUSTER_REPOS, _object(CLUSTER_REPOS, name, spec={"gitRepo": f"https://git/{name}"}))
    await client.create(
        RANCHER_SETTINGS, _object(RANCHER_SETTINGS, "chart-default-branch", value="", default="release-v2.13")
    )
    await client.create(SETTINGS, _object(SETTINGS, "containerd-registry", value=""))
    state = _object(SECRETS, "local-rke-state", "fleet-local", type="rke.cattle.io/cluster-state")
    await client.create(SECRETS, state)
    labels = {"provisioning.cattle.io/management-cluster-name": "local"}
    labelled = MergePatch({"metadata": {"labels": labels}})
    await client.patch(PROVISIONING_CLUSTERS, "local", labelled, namespace="fleet-local")
    await _set_values(client, _HARVESTER_VALUES)
    # Rancher's own configuration of this kind, which is not that of Cluster API.
    webhook = _object(MUTATING_WEBHOOK_CONFIGURATIONS, "rancher.cattle.io", webhooks=[])
    await client.create(MUTATING_WEBHOOK_CONFIGURATIONS, webhook)
    nginx = {"valuesContent": 'controller: {config: {proxy-body-size: "0"}}'}
    await client.create(HELM_CHART_CONFIGS, _object(HELM_CHART_CONFIGS, "rke2-ingress-nginx", KUBE_SYSTEM, spec=nginx))


async def complete_from_v1_6(client: Client) -> None:
    """Add what differs on a cluster that v1.7.1's own upgrade brought from v1.6.

    Scripts since v1.5 create the Secret, and label the nodes; v1.7.1's makes a number of concurrent engine upgrades a
    text. The rest of its rows leave what a new installation has: the keys of Rancher's features, the descheduler, the
    two values of monitoring. Guesses: the annotations of ManagedCharts, the deleted chart-default-branch that Rancher
    creates again, and an arm64 cluster, whose installer gives multus other images.
    """
    await complete(client)
    secret = _object(SECRETS, "stv-aggregation", "cattle-system", type="Opaque")
    await client.create(SECRETS, secret)
    engines = {"longhorn": {"defaultSettings": {"concurrentAutomaticEngineUpgradePerNodeLimit": "3"}}}
    await _set_values(client, engines)
    last = {"upgrade.harvesterhci.io/last-upgrade-target-version": "v1.7.1"}
    annotations = MergePatch({"metadata": {"annotations": last}})
    await client.patch(MANAGED_CHARTS, "harvester", annotations, namespace="fleet-local")
    multus = {"valuesContent": "manifests: {configMap: false}\n"}
    await client.create(HELM_CHART_CONFIGS, _object(HELM_CHART_CONFIGS, "rke2-multus", KUBE_SYSTEM, spec=multus))
    label = {"plan.upgrade.cattle.io/hvst-upgrade-x7k2p-skip-restart-rancher-system-agent": "e3b0c442"}
    await client.patch(NODES, "node-0", MergePatch({"metadata": {"labels": label}}))
    # A user who has chosen another overcommitment once.
    chosen = MergePatch({"value": '{"cpu":800,"memory":150,"storage":200}'})
    await client.patch(SETTINGS, "overcommit-config", chosen)


async def _set_values(client: Client, values: dict[str, Any]) -> None:
    await client.patch(MANAGED_CHARTS, "harvester", MergePatch({"spec": {"values": values}}), namespace="fleet-local")


def _object(resource: Resource, name: str, namespace: str = "", **fields: Any) -> Object:
    place = {"namespace": namespace} if namespace else {}
    return resource.with_type_meta({"metadata": {"name": name, **place}, **fields})


_RKE2 = "etc/rancher/rke2/config.yaml.d"
#: The files of a host of v1.7.1 beside those of hack/host: RKE2's configuration, the boot's own, and sshd's.
_FILES = {
    f"{_RKE2}/90-harvester-server.yaml": "cni: multus,canal\ndisable:\n- rke2-snapshot-controller\n",
    f"{_RKE2}/91-harvester-cdi.yaml": "nonroot-devices: true\n",
    f"{_RKE2}/92-harvester-kube-audit-policy.yaml": "kind: Policy\n",
    f"{_RKE2}/99-z00-harvester-reserved-resources.yaml": "kubelet-arg+:\n- system-reserved=memory=1Gi\n",
    "oem/90_custom.yaml": "stages: {initramfs: [{commands: [rm -f /var/lib/kubelet/cpu_manager_state]}]}\n",
    "etc/ssh/sshd_config.d/sftp.conf": "Subsystem sftp /usr/libexec/ssh/sftp-server\n",
    "etc/multipath/conf.d/99-longhorn.conf": 'blacklist { device { vendor "IET" } }\n',
    "run/initramfs/cos-state/state.yaml": "date: x\nstate:\n  label: COS_STATE\n",
    "var/lib/rancher/rke2/agent/pod-manifests/etcd.yaml": "kind: Pod\n",
}
#: Files that v1.7.1's script for nodes has written on a host of v1.6.
_FILES_FROM_V1_6 = {
    f"{_RKE2}/40-disable-charts.yaml": "disable:\n- rke2-snapshot-controller\n- rke2-snapshot-controller-crd\n",
    f"{_RKE2}/99-max-pods.yaml": "kubelet-arg:\n- max-pods=200\n",
    "oem/91_cleanup_kubelet.yaml": "stages: {initramfs: []}\n",
    "oem/92_hostname_override.yaml": "stages: {network: [{hostname: node-0}]}\n",
    "oem/99_disable_lh_multipathd.yaml": "stages: {initramfs: []}\n",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFiles:
    """Files of a host by path, and the arguments with which it boots; None for those of hack/host."""

    files: dict[str, str]
    arguments: str | None = None

    def write(self, root: Path) -> None:
        """Add them to a host."""
        for name, text in self.files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        rke2_manifests.stage(root, "v1.34.3+rke2r1")
        if self.arguments is not None:
            set_arguments(root, self.arguments)


INSTALLED = HostFiles(files=_FILES)
#: v1.7.1's script names the first member of a bond only, by the bond's MAC.
FROM_V1_6 = HostFiles(
    files=_FILES | _FILES_FROM_V1_6, arguments=f"multipath=off ifname=enp1s0:{mac(1)} ifname=enp2s0:{mac(2)}"
)


def add_bond(root: Path) -> None:
    """Add a bond whose second member no argument names."""
    for number, name in ((1, "enp1s0"), (7, "enp7s0")):
        add_card(root, name, mac=mac(number), bond=mac(1))


@asynccontextmanager
async def node_world(folder: Path) -> AsyncIterator[ToolkitWorld]:
    """Create three nodes with VMs, the first with a host of v1.7.1, before its images are loaded."""
    files = {**os_iso(), **prepare_iso()}
    async with vm_world(folder, files=files) as world:
        versions = {"previousVersion": "v1.7.1", "releaseMetadata": {"harvester": "v1.8.0"}}
        await world.client.patch(UPGRADE_PLANS, PLAN, MergePatch({"status": versions}), subresource="status")
        INSTALLED.write(world.tree.root)
        yield world
