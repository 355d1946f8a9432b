"""Launcher Pods of VMs, which the simulated KubeVirt does not create, and budgets that select them."""

from __future__ import annotations

from tests.support.cluster.cluster_reader import create, named
from upgrade_manager.kube import objects
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import POD_DISRUPTION_BUDGETS, PODS, VIRTUAL_MACHINE_INSTANCES

#: KubeVirt's label of the instance's uid.
INSTANCE = "kubevirt.io/created-by"


async def launch(client: Client, name: str, *, app: str, node: str) -> Object:
    """Create the launcher Pod of a VM, which ends with its instance; return the reference to the instance."""
    uid = objects.uid(await client.get(VIRTUAL_MACHINE_INSTANCES, name, namespace="default"))
    labels = {"kubevirt.io": "virt-launcher", INSTANCE: uid, "app": app}
    spec = {"nodeName": node, "containers": [{"name": "compute", "image": "launcher"}]}
    pod = named(f"virt-launcher-{name}", "default", labels=labels, spec=spec)
    owner = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "name": name, "uid": uid}
    pod["metadata"]["ownerReferences"] = [owner]
    await create(client, PODS, pod)
    ready = [{"type": "Ready", "status": "True"}]
    status = MergePatch({"status": {"phase": "Running", "conditions": ready}})
    await client.patch(PODS, objects.name(pod), status, namespace="default", subresource="status")
    return owner


async def protect(client: Client, name: str, *, least: int, owner: Object | None = None, **labels: str) -> None:
    """Create a budget, by which at least so many Pods with the labels must run; the disruption controller counts."""
    budget = named(name, "default", spec={"minAvailable": least, "selector": {"matchLabels": labels}})
    if owner is not None:
        budget["metadata"]["ownerReferences"] = [owner]
    await create(client, POD_DISRUPTION_BUDGETS, budget)


async def set_least(client: Client, name: str, least: int) -> None:
    """Let so many Pods of the budget run."""
    patch = MergePatch({"spec": {"minAvailable": least}})
    await client.patch(POD_DISRUPTION_BUDGETS, name, patch, namespace="default")
