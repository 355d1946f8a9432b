"""The objects that the checks read, as narrow as the API's selectors allow, without fields that no check needs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeAlias

from upgrade_manager.api.keys import (
    ANNOTATION_MACHINE,
    ANNOTATION_OS_UPGRADE_IMAGE,
    ANNOTATION_UNFINISHED_UPGRADE,
    FLEET_LOCAL,
    HARVESTER_SYSTEM,
    LONGHORN_SYSTEM,
    MACHINE_PLAN_SELECTOR,
    PROVISIONING_CLUSTER,
    SETTING_SERVER_VERSION,
)
from upgrade_manager.facts.rancher_features import MULTI_CLUSTER
from upgrade_manager.facts.vm_obstacles import has_machine
from upgrade_manager.kube import objects, resources
from webhook.cluster import Listing, NotInstalled

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from upgrade_manager.kube.objects import Object
    from webhook.cluster import ClusterReader

#: Fields to keep, by name; an empty tree keeps the whole field.
_Tree: TypeAlias = "dict[str, _Tree]"
_NAME = ("metadata.namespace", "metadata.name")


def keep(*paths: str, condition: str = "") -> Callable[[Object], Object]:
    """Return a transform that keeps the name, the values at these paths, and the condition of that type."""
    tree: _Tree = {}
    for path in (*_NAME, *paths):
        branch = tree
        for key in path.split("."):
            branch = branch.setdefault(key, {})

    def slim(obj: Object) -> Object:
        kept = _prune(obj, tree)
        if condition:
            kept.setdefault("status", {})["conditions"] = [objects.condition(obj, condition)]
        return kept

    return slim


def _prune(obj: Object, tree: _Tree) -> Object:
    kept: Object = {}
    for key, branch in tree.items():
        value = obj.get(key)
        if not branch and value is not None:
            kept[key] = value
        elif branch and isinstance(value, dict) and (pruned := _prune(value, branch)):
            kept[key] = pruned
    return kept


def _keep_annotation(key: str, then: Callable[[Object], Object]) -> Callable[[Object], Object]:
    def slim(obj: Object) -> Object:
        kept, value = then(obj), objects.value(obj, "metadata", "annotations", key)
        if value is not None:
            kept.setdefault("metadata", {})["annotations"] = {key: value}
        return kept

    return slim


_keep_name = keep()
_keep_source = keep("spec.isoURL", "spec.isoChecksum")
_keep_volume = keep(
    "spec.numberOfReplicas",
    "spec.diskSelector",
    "spec.nodeSelector",
    "status.state",
    "status.robustness",
    "status.kubernetesStatus.namespace",
    "status.kubernetesStatus.pvcName",
)


_keep_instance = keep(
    "spec.nodeSelector",
    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution",
    "spec.domain.devices.hostDevices",
    "status.nodeName",
    "status.phase",
)
#: The owner of nearly all instances, of which the checks read the kind alone.
_MACHINE = [{"kind": resources.VIRTUAL_MACHINES.kind}]


def _instance(instance: Object) -> Object:
    kept = _keep_instance(instance)
    if has_machine(instance):
        kept.setdefault("metadata", {})["ownerReferences"] = _MACHINE
    return kept


def _machine_plan(secret: Object) -> Object:
    """Keep the strings of labels and annotations, which the rules about drains read."""
    kept, labels = _keep_name(secret), objects.strings(secret, "metadata", "labels")
    kept.setdefault("metadata", {}).update(
        labels=labels, annotations=objects.strings(secret, "metadata", "annotations")
    )
    return kept


def _volume(volume: Object) -> Object:
    """Keep only the names of volumes that no check reports, which are nearly all of ten thousand volumes."""
    return _keep_volume(volume) if _is_at_risk(volume) else _keep_name(volume)


def _is_at_risk(volume: Object) -> bool:
    return is_degraded(volume) or has_single_replica(volume)


def is_degraded(volume: Object) -> bool:
    """Return True for an attached Longhorn volume that lacks replicas."""
    return objects.text(volume, "status", "robustness") == "degraded"


def has_single_replica(volume: Object) -> bool:
    """Return True for a Longhorn volume without redundancy."""
    return objects.number(volume, "spec", "numberOfReplicas") == 1


NODES = Listing(
    resource=resources.NODES,
    slim=_keep_annotation(
        ANNOTATION_MACHINE,
        keep("metadata.labels", "spec.unschedulable", "status.nodeInfo.osImage", condition="Ready"),
    ),
)
PLANS = Listing(
    resource=resources.UPGRADE_PLANS, slim=keep("status.currentPhase", "status.originals", condition="Progressing")
)
UPGRADES = Listing(
    resource=resources.UPGRADES, namespace=HARVESTER_SYSTEM, metadata_only=True, slim=keep("metadata.labels")
)
CLUSTERS = Listing(
    resource=resources.PROVISIONING_CLUSTERS,
    namespace=FLEET_LOCAL,
    field_selector=f"metadata.name={PROVISIONING_CLUSTER}",
    slim=_keep_annotation(
        ANNOTATION_UNFINISHED_UPGRADE, keep("spec.rkeConfig.upgradeStrategy", "status.ready", "status.conditions")
    ),
)
MACHINES = Listing(
    resource=resources.MACHINES,
    namespace=FLEET_LOCAL,
    slim=keep("metadata.deletionTimestamp", "metadata.finalizers", "status.phase", "status.nodeRef.name"),
)
MACHINE_PLANS = Listing(
    resource=resources.SECRETS,
    namespace=FLEET_LOCAL,
    field_selector=MACHINE_PLAN_SELECTOR,
    metadata_only=True,
    slim=_machine_plan,
)
VOLUMES = Listing(resource=resources.LONGHORN_VOLUMES, namespace=LONGHORN_SYSTEM, slim=_volume, is_needed=_is_at_risk)
BACKUPS = Listing(
    resource=resources.VIRTUAL_MACHINE_BACKUPS, slim=keep("status.readyToUse", "status.error", "status.progress")
)
BACKUP_SCHEDULES = Listing(resource=resources.SCHEDULE_VM_BACKUPS, slim=keep("spec.suspend", "status.suspended"))
INSTANCES = Listing(
    resource=resources.VIRTUAL_MACHINE_INSTANCES,
    slim=_instance,
)
MANAGED_CHARTS = Listing(
    resource=resources.MANAGED_CHARTS,
    namespace=FLEET_LOCAL,
    slim=keep("spec.paused", "status.summary.nonReadyResources", condition="Ready"),
)
SERVER_VERSION = Listing(
    resource=resources.SETTINGS, field_selector=f"metadata.name={SETTING_SERVER_VERSION}", slim=keep("value", "default")
)
MULTI_CLUSTER_FEATURE = Listing(
    resource=resources.RANCHER_FEATURES,
    field_selector=f"metadata.name={MULTI_CLUSTER}",
    slim=keep("spec.value", "status.lockedValue"),
)
ADDONS = Listing(resource=resources.ADDONS, slim=keep("spec.enabled", "status.status", condition="OperationFailed"))


#: Listings that grow with the cluster.
LARGE = (NODES, MACHINES, VOLUMES, INSTANCES)
#: Users cordon nodes just before they create a plan.
CORDONED_NODES = Listing(
    resource=resources.NODES, field_selector="spec.unschedulable=true", metadata_only=True, slim=_keep_name
)


def version(name: str) -> Listing:
    """Select a Version by name; the list is empty if the Version does not exist."""
    return Listing(
        resource=resources.VERSIONS,
        namespace=HARVESTER_SYSTEM,
        field_selector=f"metadata.name={name}",
        slim=_keep_source,
    )


def image(name: str) -> Listing:
    """Select a VirtualMachineImage that upgrades can use, by name."""
    return Listing(
        resource=resources.VIRTUAL_MACHINE_IMAGES,
        namespace=HARVESTER_SYSTEM,
        field_selector=f"metadata.name={name}",
        metadata_only=True,
        slim=_keep_annotation(ANNOTATION_OS_UPGRADE_IMAGE, _keep_name),
    )


async def read_all(cluster: ClusterReader, *listings: Listing) -> list[Sequence[Object]]:
    """Return the objects of each listing, read concurrently. Raises KubeError, or else NotInstalled."""
    found: list[Sequence[Object]] = []
    for result in await read_each(cluster, *listings):
        if isinstance(result, NotInstalled):
            raise result
        found.append(result)
    return found


async def read_each(cluster: ClusterReader, *listings: Listing) -> list[Sequence[Object] | NotInstalled]:
    """Return the objects of each listing, or NotInstalled for a kind that is not installed. Raises KubeError."""
    found: list[Sequence[Object] | NotInstalled] = []
    for result in await asyncio.gather(*map(cluster.list, listings), return_exceptions=True):
        if isinstance(result, BaseException) and not isinstance(result, NotInstalled):
            raise result
        found.append(result)
    return found
