"""PodDisruptionBudgets that forbid evictions and stops; stalls.py breaks an upgrade by them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.demo.commands import Create, Patch
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import NODES, POD_DISRUPTION_BUDGETS, PODS, VIRTUAL_MACHINE_INSTANCES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hack.demo.commands import Command
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object

_PINNED = {"spec": {"nodeSelector": {"zone": "a"}}}


async def forbid_evictions(client: Client, _: Object) -> tuple[Sequence[Command], Sequence[Command]]:
    """Run a Pod on each node, none of which may be evicted."""
    selector = {"app": "shop"}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "shop", "uid": "shop", "controller": True}
    damage = []
    for name in sorted(objects.name(node) for node in (await client.list(NODES)).items):
        place = {"name": f"shop-{name}", "namespace": "default", "labels": selector, "ownerReferences": [owner]}
        spec = {"nodeName": name, "containers": [{"name": "shop", "image": "rancher/mirrored-pause:3.6"}]}
        damage.append(Create(resource=PODS, manifest={"metadata": place, "spec": spec}))
    metadata = {"name": "shop", "namespace": "default"}
    budget = {"metadata": metadata, "spec": {"minAvailable": len(damage), "selector": {"matchLabels": selector}}}
    damage.append(Create(resource=POD_DISRUPTION_BUDGETS, manifest=budget))
    one = {"spec": {"minAvailable": None, "maxUnavailable": 1}}
    return damage, [Patch(resource=POD_DISRUPTION_BUDGETS, name="shop", namespace="default", body=one)]


async def protect_vm(client: Client, _: Object) -> tuple[Sequence[Command], Sequence[Command]]:
    """Keep a VM of the first node on it, and let a budget forbid that its launcher Pod stops."""
    nodes = sorted(objects.name(node) for node in (await client.list(NODES)).items)
    found = (await client.list(VIRTUAL_MACHINE_INSTANCES)).items
    there = [one for one in found if objects.status(one).get("nodeName") == nodes[0]]
    if not there:
        return [], []
    instance = min(there, key=objects.qualified_name)
    name, namespace, uid = objects.name(instance), objects.namespace(instance), objects.uid(instance)
    owner = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "name": name, "uid": uid}
    labels = {"kubevirt.io": "virt-launcher", "kubevirt.io/created-by": uid, "app": "ledger"}
    launcher = {"name": f"virt-launcher-{name}", "namespace": namespace, "labels": labels, "ownerReferences": [owner]}
    pod = {"nodeName": nodes[0], "containers": [{"name": "compute", "image": "rancher/mirrored-pause:3.6"}]}
    place, selector = {"name": "ledger", "namespace": namespace}, {"matchLabels": {"app": "ledger"}}
    budget = {"metadata": place, "spec": {"minAvailable": 1, "selector": selector}}
    damage: list[Command] = [
        Patch(resource=VIRTUAL_MACHINE_INSTANCES, name=name, namespace=namespace, body=_PINNED),
        Create(resource=PODS, manifest={"metadata": launcher, "spec": pod}),
        Create(resource=POD_DISRUPTION_BUDGETS, manifest=budget),
    ]
    none = {"spec": {"minAvailable": 0, "maxUnavailable": None}}
    return damage, [Patch(resource=POD_DISRUPTION_BUDGETS, **place, body=none)]
