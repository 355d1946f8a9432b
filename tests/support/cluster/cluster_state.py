"""The contents of a cluster: all lasting objects, those of an upgrade, and the settings that an upgrade overrides."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from hack.simulation import Simulation
from upgrade_manager.api.keys import LABEL_PLAN
from upgrade_manager.api.names import HISTORY_SUFFIX
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object
from upgrade_manager.pipeline.ending.orphaned_jobs import TTL

#: Kinds whose objects controllers create and delete, or place at random.
_PASSING = {
    "Event", "Pod", "Lease", "ReplicaSet",
    "VirtualMachineInstanceMigration", "VirtualMachineInstance", "Volume", "Engine",
}  # fmt: skip
#: Fields that differ from run to run, also by the moment at which a crash lets the manager see a reboot.
_VOLATILE = {
    "uid", "resourceVersion", "secretVersion", "rebooted", "creationTimestamp", "lastTransitionTime", "lastUpdateTime",
    "lastHeartbeatTime", "phaseTransitionTimestamp", "managedFields", "bootID", "generation", "observedGeneration",
    "last-apply-time", "since", "begin", "end", "startTime", "completionTime", "lastProbeTime",
    "rke.cattle.io/plan-probes-passed", "success-count",
    # A crash prolongs waits, so that others become blockers.
    "pastBlockers",
}  # fmt: skip
#: Duration of an upgrade, in the message of a succeeded plan.
_DURATION = re.compile(r"(?<=^Upgraded from v1\.7\.1 to v1\.8\.0) in [\dhmins ]+(?= \()")


async def end_state(simulation: Simulation) -> dict[str, Any]:
    """Return the lasting objects of the cluster by title, equal for runs that end alike."""
    return lasting(await stored(simulation))


async def stored(simulation: Simulation) -> list[Object]:
    """Return every object of the cluster."""
    return [json.loads(line) for line in (await simulation.dump()).splitlines()]


def lasting(found: Iterable[Object]) -> dict[str, Any]:
    """Map titles to the objects that stay, without volatile fields."""
    return {title(obj): _stable(obj) for obj in found if obj["kind"] not in _PASSING and not _is_history(obj)}


def _is_history(obj: Object) -> bool:
    """Return True for the history of a plan, whose rows have the times of the run."""
    return obj["kind"] == "ConfigMap" and objects.name(obj).endswith(HISTORY_SUFFIX)


def is_collected(found: Collection[Object]) -> bool:
    """Return True if the garbage collector has deleted every object of a deleted owner."""
    living = {objects.uid(obj) for obj in found}
    owners = (owner for obj in found for owner in objects.metadata(obj).get("ownerReferences") or [])
    return all(owner["uid"] in living for owner in owners)


def _stable(value: Any) -> Any:
    if isinstance(value, dict):
        # The survey names its Plan by uid.
        volatile = _VOLATILE | {"plan"} if value.keys() == {"plan", "nodes"} else _VOLATILE
        return {key: _stable(inner) for key, inner in value.items() if key not in volatile}
    if isinstance(value, list):
        return [_stable(inner) for inner in value]
    return _DURATION.sub("", value) if isinstance(value, str) else value


#: The objects that a failure leaves for a new attempt.
PAYLOAD = (
    "Deployment harvester-system/upgrade-repo",
    "EndpointSlice harvester-system/upgrade-repo-",
    "Service harvester-system/upgrade-repo",
    "VirtualMachineImage harvester-system/upgrade-iso",
)


async def created_objects(simulation: Simulation, plan: str = "upgrade") -> list[str]:
    """Return the titles of the plan's objects, without orphaned Jobs and what these read."""
    state = (await end_state(simulation)).items()
    created = {name: obj for name, obj in state if objects.labels(obj).get(LABEL_PLAN) == plan}
    kept = {name for name, obj in created.items() if _is_orphaned(obj)}
    # The Deployment, the Service and the image belong to the Jobs, and an EndpointSlice to the Service.
    for _ in range(2):
        kept |= {name for name, obj in created.items() if kept.intersection(_owners(obj))}
    return [name for name in created if name not in kept]


def _is_orphaned(obj: Object) -> bool:
    return obj["kind"] == "Job" and objects.spec(obj).get("ttlSecondsAfterFinished") == TTL and not _owners(obj)


def _owners(obj: Object) -> list[str]:
    owners = objects.metadata(obj).get("ownerReferences") or []
    return [f"{owner['kind']} {objects.namespace(obj)}/{owner['name']}" for owner in owners]


async def overridden_settings(simulation: Simulation) -> list[Any]:
    """Return everything that an upgrade changes and restores."""
    state = await end_state(simulation)
    nodes = [obj for obj in state.values() if obj["kind"] == "Node"]
    return [
        state["Setting longhorn-system/replica-replenishment-wait-interval"]["value"],
        state["Addon kube-system/descheduler"]["spec"]["enabled"],
        objects.spec(state["Cluster fleet-local/local"])["rkeConfig"].get("upgradeStrategy"),
        [key for node in nodes for key in objects.labels(node) if key.startswith("plan.upgrade.cattle.io/")],
        [key for node in nodes for key in objects.annotations_of(node) if "pendingOSImage" in key],
        update_methods(state),
    ]


def update_methods(state: Mapping[str, Any]) -> list[Any]:
    """Return what Harvester's chart has for KubeVirt's update methods, and KubeVirt's list."""
    chart = objects.spec(state.get("ManagedChart fleet-local/harvester") or {})
    kubevirt = state.get("KubeVirt harvester-system/kubevirt")
    return [chart.get("values"), chart.get("diff"), objects.value(kubevirt, "spec", "workloadUpdateStrategy")]


def title(obj: Object) -> str:
    """Return kind, namespace and name: `Job harvester-system/x`, `Node n1`."""
    namespace = objects.namespace(obj)
    return f"{obj['kind']} {namespace}{'/' if namespace else ''}{objects.name(obj)}"
