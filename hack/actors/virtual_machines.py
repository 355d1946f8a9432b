"""KubeVirt's VM and VMI controllers: a VirtualMachine that should run has an instance on a fitting node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.actors.caches import BY_NODE
from hack.actors.conditions import TRANSITION, with_condition
from hack.actors.controller import NamespacedController
from hack.actors.kinds import controller_reference
from hack.actors.placement import is_final, place
from upgrade_manager.api.keys import HARVESTER_SYSTEM
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import AlreadyExists, NotFound
from upgrade_manager.kube.patch import MergePatch, merge_diff
from upgrade_manager.kube.resources import KUBEVIRTS, NODES, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES

if TYPE_CHECKING:
    from hack.actors.caches import Cache
    from hack.actors.context import ActorContext
    from hack.actors.controller import Key
    from hack.actors.controller_loop import RequeueAfter
    from upgrade_manager.kube.objects import Object

NODE_LABEL = "kubevirt.io/nodeName"
#: Seconds between attempts to place an instance.
_LOOK = 2.0


class VirtualMachineController(NamespacedController):
    """Reconciles the VirtualMachines of all namespaces."""

    def __init__(self, context: ActorContext) -> None:
        super().__init__(context, VIRTUAL_MACHINES, user_agent="virt-controller", loop="virtual machines")
        self._instances = context.caches.of(VIRTUAL_MACHINE_INSTANCES)
        self._nodes = context.caches.of(NODES)
        self._kubevirts = context.caches.of(KUBEVIRTS)
        self._instances.subscribe(self._changed)

    async def _reconcile(self, key: Key) -> RequeueAfter:
        machine = self._cached(key)
        instance = self._instances.store.get(key[1], key[0])
        if machine is None:
            return None
        wanted = _is_wanted(machine, instance)
        if instance is not None and not wanted:
            return await self._stop(machine, instance)
        if instance is None and wanted:
            await self._create(machine)
            return None
        if instance is not None and not is_final(instance) and objects.status(instance).get("phase") != "Running":
            return await self._boot(instance)
        await self._update_status(machine, instance)
        return None

    async def _create(self, machine: Object) -> None:
        instance = instance_of(machine, node="")
        try:
            await self._instances.seen(await self._client.create(VIRTUAL_MACHINE_INSTANCES, instance))
        except AlreadyExists:
            return
        await self._clear_requests(machine)

    async def _boot(self, instance: Object) -> RequeueAfter:
        seconds = self._context.seconds(self._context.scenario.durations.vm_start)
        left = self._timers.left(objects.uid(instance), "start", seconds)
        if left > 0:
            return left
        node = place(instance, self._nodes.store.list(), self._load)
        if not node:
            return _LOOK
        self._timers.forget(objects.uid(instance))
        at, version = self._context.timestamp(), launcher_version(self._kubevirts)
        await self._write(instance, running_on(node, objects.status(instance), at=at, launcher=version))
        return None

    def _load(self, node: str) -> int:
        return len(self._instances.by_index(BY_NODE, node))

    async def _stop(self, machine: Object, instance: Object) -> RequeueAfter:
        seconds = self._context.seconds(self._context.scenario.durations.pod_stop)
        left = self._timers.left(objects.uid(instance), "stop", seconds)
        if left > 0:
            return left
        self._timers.forget(objects.uid(instance))
        try:
            await self._client.delete(
                VIRTUAL_MACHINE_INSTANCES,
                objects.name(instance),
                namespace=objects.namespace(instance),
                uid=objects.uid(instance),
            )
        except NotFound:
            return None
        await self._clear_requests(machine)
        return None

    async def _clear_requests(self, machine: Object) -> None:
        if objects.status(machine).get("stateChangeRequests"):
            await self._write_status(machine, {"stateChangeRequests": None})

    async def _update_status(self, machine: Object, instance: Object | None) -> None:
        up = instance is not None and objects.status(instance).get("phase") == "Running"
        wanted = {
            "printableStatus": "Running" if up else "Stopped" if instance is None else "Starting",
            "ready": up,
            "created": instance is not None,
        }
        difference = merge_diff({key: objects.status(machine).get(key) for key in wanted}, wanted)
        if difference:
            await self._write_status(machine, difference)

    async def _write(self, instance: Object, body: Object) -> None:
        patch = MergePatch(body).at(objects.resource_version(instance))
        name, namespace = objects.name(instance), objects.namespace(instance)
        await self._instances.seen(
            await self._client.patch(VIRTUAL_MACHINE_INSTANCES, name, patch, namespace=namespace)
        )

    async def _write_status(self, machine: Object, status: Object) -> None:
        patch = MergePatch({"status": status})
        await self._cache.patch(self._client, machine, patch)


def _is_wanted(machine: Object, instance: Object | None) -> bool:
    """Report whether an instance should exist, by run strategy or by a request in the status."""
    actions = [one["action"] for one in objects.status(machine).get("stateChangeRequests") or ()]
    match objects.spec(machine).get("runStrategy"):
        case "Always":
            return True
        case "Halted":
            return False
        case "Once":
            return instance is not None or not objects.status(machine).get("created")
    if "Stop" in actions:
        return False
    return "Start" in actions or instance is not None


def launcher_version(kubevirts: Cache) -> str | None:
    """Return the version of the launchers that KubeVirt starts now; None without KubeVirt."""
    kubevirt = kubevirts.store.get("kubevirt", HARVESTER_SYSTEM)
    return objects.status(kubevirt).get("observedKubeVirtVersion") if kubevirt is not None else None


def running_on(node: str, status: Object, *, at: str, launcher: str | None) -> Object:
    """Build the patch that makes an instance run on the node."""
    conditions = with_condition(status.get("conditions") or [], "Ready", "True", at=at, time=TRANSITION)
    return {
        "metadata": {"labels": {NODE_LABEL: node}},
        "status": {
            "phase": "Running",
            "nodeName": node,
            "evacuationNodeName": None,
            "conditions": conditions,
            "launcherContainerImageVersion": launcher,
        },
    }


def instance_of(machine: Object, *, node: str, launcher: str = "") -> Object:
    """Build the instance of a VM, running if a node is given, with that version of its launcher."""
    template = objects.spec(machine)["template"]
    devices = ((template.get("spec") or {}).get("domain") or {}).get("devices") or {}
    movable = devices.get("hostDevices") is None
    live: Object = {"type": "LiveMigratable", "status": "True" if movable else "False"}
    if not movable:
        live |= {"reason": "HostDeviceNotLiveMigratable", "message": "VMI uses a PCI host device"}
    owner = controller_reference(VIRTUAL_MACHINES, machine)
    instance: Object = {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": {
            "name": objects.name(machine),
            "namespace": objects.namespace(machine),
            "labels": {**(template.get("metadata", {}).get("labels") or {})},
            "ownerReferences": [owner],
        },
        "spec": template["spec"],
        "status": {"phase": "Pending", "conditions": [live]},
    }
    if node:
        instance["metadata"]["labels"][NODE_LABEL] = node
        instance["status"] |= {"phase": "Running", "nodeName": node, "launcherContainerImageVersion": launcher}
        instance["status"]["conditions"] = [{"type": "Ready", "status": "True"}, live]
    return instance
