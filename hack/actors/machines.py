"""Cluster API's machine controller: copies the node's info to the Machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.actors.controller import Controller
from upgrade_manager.api.keys import ANNOTATION_MACHINE, FLEET_LOCAL
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch, merge_diff
from upgrade_manager.kube.resources import MACHINES, NODES

if TYPE_CHECKING:
    from hack.actors.context import ActorContext
    from hack.actors.controller_loop import RequeueAfter
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.store import Change

INFO = (
    "architecture",
    "bootID",
    "containerRuntimeVersion",
    "kernelVersion",
    "kubeProxyVersion",
    "kubeletVersion",
    "machineID",
    "operatingSystem",
    "osImage",
    "systemUUID",
)


class MachineController(Controller[str]):
    """Reconciles status.nodeInfo of Machines."""

    def __init__(self, context: ActorContext) -> None:
        super().__init__(context, NODES, user_agent="capi-machine-controller", loop="machines", key_of=objects.name)
        self._machines = context.caches.of(MACHINES)

    def _changed(self, change: Change) -> None:
        old = objects.status(change.old or {}).get("nodeInfo")
        if old != objects.status(change.obj).get("nodeInfo"):
            super()._changed(change)

    async def _reconcile(self, key: str) -> RequeueAfter:
        node = self._cache.store.get(key)
        machine = self._machines.store.get(
            objects.annotations_of(node or {}).get(ANNOTATION_MACHINE) or "", FLEET_LOCAL
        )
        if node is None or machine is None:
            return None
        wanted = node_info(node)
        difference = merge_diff(objects.status(machine).get("nodeInfo") or {}, wanted)
        if not difference:
            return None
        patch = MergePatch({"status": {"nodeInfo": wanted}})
        await self._machines.patch(self._client, machine, patch)
        return None


def node_info(node: Object) -> dict[str, str]:
    """Return the ten required fields of a Machine's status.nodeInfo."""
    info = objects.status(node).get("nodeInfo") or {}
    return {key: str(info.get(key) or "") for key in INFO}
