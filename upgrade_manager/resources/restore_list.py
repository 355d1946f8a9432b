"""The ConfigMap with the VMs to start again after a node's upgrade: the toolkit writes it, the manager reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import HARVESTER_SYSTEM
from upgrade_manager.api.names import restore_vm_config_map
from upgrade_manager.kube import fields, objects
from upgrade_manager.kube.resources import CONFIG_MAPS, UPGRADE_PLANS
from upgrade_manager.resources.owner import owner_reference

if TYPE_CHECKING:
    from collections.abc import Sequence

    from upgrade_manager.kube.objects import Object


def restore_list(plan: Object, *, node: str, machines: Sequence[str]) -> Object:
    """Build the ConfigMap of a plan with the VMs of its first node."""
    metadata = {
        "name": restore_vm_config_map(objects.name(plan)),
        "namespace": HARVESTER_SYSTEM,
        "ownerReferences": [owner_reference(UPGRADE_PLANS, plan)],
    }
    head = {"apiVersion": CONFIG_MAPS.api_version, "kind": CONFIG_MAPS.kind, "metadata": metadata}
    return {**head, "data": {node: ",".join(machines)}}


def is_list_of(found: Object, plan: Object) -> bool:
    """Return True if the ConfigMap belongs to this plan, not to an earlier one of that name.

    The toolkit sets an ownerReference. Without one, the plan must be the older object.
    """
    owners = fields.items(found, "metadata", "ownerReferences")
    if owners:
        return any(fields.text(owner, "uid") == objects.uid(plan) for owner in owners)
    return fields.text(found, "metadata", "creationTimestamp") >= fields.text(plan, "metadata", "creationTimestamp")


def listed_vms(found: Object, node: str) -> list[str]:
    """Return namespace/name of the node's VMs, each once."""
    parts = (part.strip() for part in fields.text(found, "data", node).split(","))
    return list(dict.fromkeys(part for part in parts if part))
