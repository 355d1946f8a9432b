"""All checks on both API servers: of a healthy cluster, and of one where each finds something."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from tests.support import tiers
from tests.support.cluster import simulate
from tests.support.cluster.cluster_reader import assert_messages, create, find, named, set_status
from tests.support.cluster.instances import GPU, affinity, instance
from upgrade_manager.kube import objects, resources
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import Resource
from webhook.catalogue import CHECKS
from webhook.cluster import LiveReader, NotInstalled
from webhook.listings import ADDONS

pytestmark = pytest.mark.servers

VERSION, ISO, ISO_ANNOTATION = {"version": "v1.8.0"}, "harvester-v1.8.0", "harvesterhci.io/os-upgrade-image"
FLEET, SYSTEM, DATA = "fleet-local", "harvester-system", "longhorn-system"
SOURCE = {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "db"}
BACKUP = {"source": SOURCE, "type": "snapshot"}
SCHEDULE = {"cron": "0 2 * * *", "retain": 8, "maxFailure": 4, "suspend": False, "vmbackup": {"source": SOURCE}}
ON_NODE_0 = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-0"]}]}
BOUND = instance(affinity(ON_NODE_0), on="node-1")
PROGRESSING = {"type": "Progressing", "status": "True", "reason": "Reason", "message": "Message"}
SINCE = {"lastTransitionTime": "2026-01-01T00:00:00Z"}
LOST = {"type": "Ready", "status": "Unknown", "message": "Lost."}
MODIFIED = {"type": "Ready", "status": "False", "message": "Modified"}
DETACHED = {"state": "detached", "robustness": "unknown"}
RUNNING = {"currentPhase": "RepoCreating", "conditions": [PROGRESSING | SINCE]}
PREPARING = {"harvesterhci.io/upgradeState": "PreparingNodes"}
#: Objects that are created.
CREATED: dict[Resource, Any] = {
    resources.LONGHORN_VOLUMES: named("pvc-1", DATA, spec={"numberOfReplicas": 1}, status=DETACHED),
    resources.VIRTUAL_MACHINE_BACKUPS: named(
        "daily", "default", spec=BACKUP, status={"readyToUse": False, "progress": 7}
    ),
    resources.SCHEDULE_VM_BACKUPS: named("daily", "default", spec=SCHEDULE, status={"suspended": False}),
    resources.VIRTUAL_MACHINE_INSTANCES: {**BOUND, "metadata": {"name": "db", "namespace": "default"}},
    resources.UPGRADE_PLANS: named("other", spec=VERSION, status=RUNNING),
    resources.RANCHER_FEATURES: named("multi-cluster-management", spec={"value": True}),
    resources.UPGRADES: named("up", SYSTEM, labels=PREPARING, spec=VERSION),
}
#: Changes of objects, by kind, name and namespace.
CHANGED: list[tuple[Resource, str, str, Any]] = [
    (resources.VIRTUAL_MACHINE_IMAGES, ISO, SYSTEM, {"metadata": {"annotations": {ISO_ANNOTATION: None}}}),
    (resources.NODES, "node-0", "", {"spec": {"unschedulable": True}}),
    (resources.NODES, "node-1", "", {"metadata": {"labels": {"harvesterhci.io/managed": None}}}),
    (resources.NODES, "node-2", "", {"metadata": {"annotations": {"cluster.x-k8s.io/machine": "x"}}}),
]
#: Changes of the status; without a name, of the first object.
STATUS: list[tuple[Resource, str, str, dict[str, Any]]] = [
    (resources.NODES, "node-2", "", {"conditions": [LOST]}),
    (resources.PROVISIONING_CLUSTERS, "local", FLEET, {"ready": False}),
    (resources.MACHINES, "", FLEET, {"phase": "Failed"}),
    (resources.LONGHORN_VOLUMES, "", DATA, {"robustness": "degraded"}),
    (resources.MANAGED_CHARTS, "harvester", FLEET, {"conditions": [MODIFIED]}),
    (resources.ADDONS, "descheduler", "kube-system", {"status": "AddonUpdating"}),
]
BOUND = instance(affinity(ON_NODE_0), on="node-1")


def pausing(*nodes: str) -> dict[str, Any]:
    return {"nodeUpgradeOption": {"pauseNodes": [*nodes]}}


#: The plan's spec for checks that read it: of a plan without findings, and of one with findings.
SPECS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "version": (VERSION, {"version": "v9"}),
    "image": ({"image": ISO}, {"image": ISO}),
    "toolkit image": (VERSION, VERSION),
    "VM migration": (VERSION, {**VERSION, "nodeUpgradeOption": {"onMigrationFailure": "Wait"}}),
    "pause list": (pausing("node-0", "node-1"), pausing("node-0", "node-9")),
    "pause after": ({"nodeUpgradeOption": {"pauseAfter": 3}}, {"nodeUpgradeOption": {"pauseAfter": 4}}),
}
REPORTED: dict[str, list[str]] = {
    "version": ["Version harvester-system/v9 does not exist"],
    "image": [f"{ISO} lacks the annotation"],
    "pause list": ["spec.nodeUpgradeOption.pauseNodes[1]: Node node-9 does not exist"],
    "pause after": ["The cluster has 3 nodes, so that the upgrade never pauses after 4. Use at most 3, or remove it"],
    "annotations": [],
    "toolkit image": [],
    "VM migration": ["Harvester's toolkit (kind harvester) cannot wait"],
    "concurrency": ["UpgradePlan other is in progress (phase RepoCreating). "],
    "built-in upgrade": ["up is in progress (state PreparingNodes)"],
    "nodes": ["Node node-0 is cordoned. ", "Node node-2 is not Ready: Lost. "],
    "cluster": ["Cluster fleet-local/local is not ready: "],
    "rancher features": ["multi-cluster-management has spec.value true"],
    "machines": ["is in phase Failed"],
    "pairing": ["Node node-1 lacks the label", "Node node-2 names Machine fleet-local/x, which does not exist"],
    "Longhorn": [
        "its robustness is degraded instead of healthy. ",
        "Volume longhorn-system/pvc-1 is detached and has a single replica",
    ],
    "backups": [
        "VirtualMachineBackup default/daily is in progress (7 %). ",
        "ScheduleVMBackup default/daily is not suspended. ",
    ],
    "VMs": ["no other schedulable node matches its node affinity"],
    "managed charts": ["ManagedChart fleet-local/harvester is not ready: Modified. "],
    "addons": ["Addon kube-system/descheduler is enabled, but in state AddonUpdating"],
}


@pytest.fixture
async def client(request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    """Create the objects of three-nodes; return an administrator's client."""
    factory = simulate.embedded
    if tiers.server_of(request.node) == tiers.REAL:
        factory = simulate.simulate_on(request.getfixturevalue("control_plane"))
    async with factory(actors=False) as simulation:
        yield simulation.client()


async def break_cluster(client: Client) -> None:
    """Make each check report something."""
    for kind, name, namespace, status in STATUS:
        found = name or objects.name((await client.list(kind, namespace=namespace)).items[0])
        await set_status(client, kind, found, namespace, **status)
    for kind, obj in CREATED.items():
        await create(client, kind, obj)
    for kind, name, namespace, patch in CHANGED:
        await client.patch(kind, name, MergePatch(patch), namespace=namespace)


async def test_each_check_finds_what_is_broken(client: Client) -> None:
    live, checks = LiveReader(client), {check.name: check for check in CHECKS}
    none: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    for name, check in checks.items():
        assert await find(check, live, **SPECS.get(name, none)[0]) == [], name
    await break_cluster(client)
    for name, check in checks.items():
        assert_messages(await find(check, live, **SPECS.get(name, none)[1]), REPORTED[name])
    devices = MergePatch({"spec": {"domain": {"devices": {"hostDevices": [GPU]}}}})
    await client.patch(resources.VIRTUAL_MACHINE_INSTANCES, "db", devices, namespace="default")
    assert_messages(await find(checks["VMs"], live), ["it uses host devices"])
    await client.delete(resources.PROVISIONING_CLUSTERS, "local", namespace=FLEET)
    assert_messages(
        await find(checks["cluster"], live), ["Cluster fleet-local/local (provisioning.cattle.io) does not exist. "]
    )


async def test_kind_that_is_not_served_is_not_installed(client: Client) -> None:
    missing = replace(ADDONS, resource=replace(ADDONS.resource, group="example.com"))
    with pytest.raises(NotInstalled, match=r"addons\.example\.com"):
        await LiveReader(client).list(missing)
