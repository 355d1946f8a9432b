"""The ConfigMap with the VMs to start again after a node's upgrade: the toolkit writes it, the manager reads it.

toolkit/vms/restore_list.py writes it; pipeline/node_upgrade/vm_restore.py reads it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import HARVESTER_SYSTEM, LABEL_PLAN_UID, Component
from upgrade_manager.api.names import restore_vm_config_map
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import CONFIG_MAPS
from upgrade_manager.resources.owner import Owner

if TYPE_CHECKING:
    from collections.abc import Sequence

    from upgrade_manager.kube.objects import Object


def restore_list(plan: Object, *, node: str, machines: Sequence[str]) -> Object:
    """Build the ConfigMap of a plan with the VMs of its first node."""
    name = restore_vm_config_map(objects.name(plan))
    manifest = _owner(plan).manifest(CONFIG_MAPS, name, Component.NODE_UPGRADE, namespace=HARVESTER_SYSTEM)
    return {**manifest, "data": {node: ",".join(machines)}}


def ownership(found: Object, plan: Object) -> Object:
    """Return the change of metadata that ties the ConfigMap to its plan by labels alone; empty if it is so.

    Harvester's toolkit sets no label. An ownerReference, which earlier versions of the manager's toolkit set, would let
    a deletion of the plan in the foreground take the list from a running restore-vm Job.
    """
    uid, owners = objects.uid(plan), objects.items(found, "metadata", "ownerReferences")
    others = [owner for owner in owners if objects.text(owner, "uid") != uid]
    labels = {} if _label(found) == uid else {"labels": _owner(plan).labels(Component.NODE_UPGRADE)}
    return {**labels, **({"ownerReferences": others or None} if others != owners else {})}


def is_list_of(found: Object, plan: Object) -> bool:
    """Return True if the ConfigMap belongs to this plan, not to an earlier one of that name.

    The manager's toolkit sets a label, Harvester's an ownerReference or nothing: then the plan must be the older one.
    """
    if label := _label(found):
        return label == objects.uid(plan)
    owners = objects.items(found, "metadata", "ownerReferences")
    if owners:
        return any(objects.text(owner, "uid") == objects.uid(plan) for owner in owners)
    return objects.text(found, "metadata", "creationTimestamp") >= objects.text(plan, "metadata", "creationTimestamp")


def _label(found: Object) -> str:
    return objects.labels(found).get(LABEL_PLAN_UID, "")


def _owner(plan: Object) -> Owner:
    return Owner(name=objects.name(plan), uid=objects.uid(plan))


def listed_vms(found: Object, node: str) -> list[str]:
    """Return namespace/name of the node's VMs, each once."""
    parts = (part.strip() for part in objects.text(found, "data", node).split(","))
    return list(dict.fromkeys(part for part in parts if part))
