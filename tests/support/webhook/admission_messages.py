"""The messages of all checks on a cluster where everything is wrong; the listing in tests/golden is documentation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hack.virtual_time import VirtualEventLoop
from tests.support.cluster.cluster_reader import MemoryReader, named, node
from tests.support.managers.toolkit_config import TOOLKIT
from upgrade_manager.api.keys import (
    ANNOTATION_MIN_CERTS_DAYS,
    ANNOTATION_SKIP_DISK_CHECK,
    ANNOTATION_TOOLKIT_IMAGE,
    ANNOTATION_TOOLKIT_KIND,
)
from upgrade_manager.kube import resources
from webhook.catalogue import CHECKS
from webhook.check import Subject
from webhook.checks.plan_annotations import CHECK as ANNOTATION
from webhook.checks.toolkit_image import CHECK as TOOLKIT_IMAGE
from webhook.runner import run_checks

PATH = Path(__file__).parents[2] / "golden/admission.txt"
CLAIM = {"namespace": "default", "pvcName": "db-disk-0"}
AFFINITY = {
    "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["x"]}]}]
    }
}


def condition(type_: str, status: str, message: str = "") -> dict[str, Any]:
    return {"conditions": [{"type": type_, "status": status, "message": message}]}


def machine(name: str, phase: str, of: str = "") -> Any:
    return named(name, "fleet-local", status={"phase": phase, "nodeRef": {"name": of} if of else None})


def volume(name: str, replicas: int, state: str, robustness: str = "", claim: Any = None) -> Any:
    status = {"state": state, "robustness": robustness, "kubernetesStatus": claim}
    return named(name, "longhorn-system", spec={"numberOfReplicas": replicas}, status=status)


def instance(name: str, **spec: Any) -> Any:
    found = named(name, "default", spec=spec, status={"nodeName": "node-0", "phase": "Running"})
    found["metadata"]["ownerReferences"] = [{"kind": "VirtualMachine"}]
    return found


CLUSTER: dict[Any, list[Any]] = {
    resources.VIRTUAL_MACHINE_IMAGES: [named("iso", "harvester-system")],
    resources.UPGRADE_PLANS: [
        named("running", status={"currentPhase": "NodeUpgrading", **condition("Progressing", "True")}),
        named("failed", status={"currentPhase": "Failed", "originals": [{"object": "Setting a/b", "field": "value"}]}),
    ],
    resources.UPGRADES: [
        named("hvst-upgrade-1", "harvester-system", labels={"harvesterhci.io/upgradeState": "UpgradingNodes"}),
        named(
            "hvst-upgrade-2",
            "harvester-system",
            labels={"harvesterhci.io/upgradeState": "Succeeded", "harvesterhci.io/upgradeCleanup": "Pending"},
        ),
    ],
    resources.NODES: [
        node("node-0", cordoned=True),
        named("node-1", status=condition("Ready", "Unknown", "Kubelet stopped posting node status.")),
        node("node-2", machine="m-0"),
        node("node-3", machine="m-9"),
        node("node-4", machine="m-4"),
    ],
    resources.PROVISIONING_CLUSTERS: [
        named("local", "fleet-local", status=condition("Ready", "False", "waiting for probes: kubelet"))
    ],
    resources.MACHINES: [machine("m-0", "Running", "node-0"), machine("m-4", "Provisioning"), machine("m-5", "")],
    resources.LONGHORN_VOLUMES: [
        volume("pvc-1", 3, "attached", "degraded", CLAIM),
        volume("pvc-2", 1, "attached", "healthy", CLAIM),
        volume("pvc-3", 1, "detached", "unknown"),
    ],
    resources.VIRTUAL_MACHINE_BACKUPS: [named("db-1", "default", status={"progress": 40})],
    resources.SCHEDULE_VM_BACKUPS: [
        named("nightly", "default", spec={"suspend": False}),
        named("weekly", "default", spec={"suspend": True}),
    ],
    resources.VIRTUAL_MACHINE_INSTANCES: [
        instance("pinned", nodeSelector={"kubernetes.io/hostname": "node-0"}),
        instance("gpu", domain={"devices": {"hostDevices": [{"name": "gpu"}]}}),
        instance("zonal", affinity={"nodeAffinity": AFFINITY}),
    ],
    resources.MANAGED_CHARTS: [
        named(
            "harvester", "fleet-local", status=condition("Ready", "False", "Modified(1) [Cluster fleet-local/local]")
        ),
        named("harvester-crd", "fleet-local"),
    ],
    resources.RANCHER_FEATURES: [named("multi-cluster-management", spec={"value": True})],
    resources.ADDONS: [
        named("logging", "cattle-logging-system", spec={"enabled": True}, status={"status": "AddonEnabling"}),
        named("nvidia", "harvester-system", spec={"enabled": True}),
    ],
}
SPECS: list[dict[str, Any]] = [
    {"nodeUpgradeOption": {"pauseNodes": ["node-0", "node-9"], "pauseAfter": 9, "onMigrationFailure": "Wait"}},
    {"version": "v9.0.0"},
    {"image": "iso"},
    {"image": "missing"},
    {"image": "default/iso"},
    {"image": "a/b/c"},
]
ANNOTATIONS = [
    {ANNOTATION_TOOLKIT_IMAGE: "registry/toolkit:v1", ANNOTATION_TOOLKIT_KIND: "mine"},
    {ANNOTATION_TOOLKIT_IMAGE: "registry/toolkit"},
    {ANNOTATION_TOOLKIT_KIND: "own"},
    {ANNOTATION_SKIP_DISK_CHECK: "yes", ANNOTATION_MIN_CERTS_DAYS: "-1"},
]
EMPTY: dict[Any, list[Any]] = {resources.NODES: []}


async def _lines() -> list[str]:
    lines: list[str] = []
    runs = [(CLUSTER, SPECS[0], CHECKS), *((CLUSTER, spec, CHECKS[:2]) for spec in SPECS[1:])]
    runs.append((EMPTY, {}, tuple(check for check in CHECKS if check.name in {"nodes", "cluster"})))
    subjects = [
        (Subject.of({"spec": spec}, cluster=MemoryReader(cluster), toolkit=TOOLKIT), checks)
        for cluster, spec, checks in runs
    ]
    plans = [{"metadata": {"annotations": one}} for one in ANNOTATIONS]
    subjects += [
        (Subject.of(one, cluster=MemoryReader({}), toolkit=TOOLKIT), (ANNOTATION, TOOLKIT_IMAGE)) for one in plans
    ]
    for subject, checks in subjects:
        results = await run_checks(checks, subject)
        lines += [f"{r.name} | {f.field} | {f.message}" for r in results for f in r.findings]
    return lines


def text() -> str:
    """Return the listing: check, field, message."""
    loop = VirtualEventLoop()
    try:
        return "\n".join(loop.run_until_complete(_lines())) + "\n"
    finally:
        loop.close()


if __name__ == "__main__":
    PATH.write_text(text())
