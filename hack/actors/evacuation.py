"""KubeVirt's evacuation controller: VMs leave a node with the drain taint, or a node that evicts them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.actors.caches import BY_NODE
from hack.actors.controller import Controller
from hack.actors.placement import is_final
from hack.actors.virt_api import VMI_LABEL
from upgrade_manager.api.keys import TAINT_KUBEVIRT_DRAIN
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import NotFound
from upgrade_manager.kube.resources import MIGRATIONS, NODES, VIRTUAL_MACHINE_INSTANCES

if TYPE_CHECKING:
    from hack.actors.context import ActorContext
    from hack.actors.controller_loop import RequeueAfter
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.store import Change

#: KubeVirt's limits of parallel migrations, and the requeue interval in seconds at a limit.
IN_CLUSTER = 5
FROM_NODE = 2
_INTERVAL = 5.0
_MIN_INTERVAL = 0.1
EVACUATION = "kubevirt.io/evacuationMigration"


class EvacuationController(Controller[str]):
    """Creates migrations; its keys are node names."""

    def __init__(self, context: ActorContext) -> None:
        super().__init__(
            context, NODES, user_agent="virt-controller", loop="evacuation", key_of=objects.name, workers=1
        )
        self._instances = context.caches.of(VIRTUAL_MACHINE_INSTANCES)
        self._migrations = context.caches.of(MIGRATIONS)
        self._instances.subscribe(self._instance_changed)
        self._migrations.subscribe(self._migration_changed)

    def _changed(self, change: Change) -> None:
        if objects.spec(change.old or {}).get("taints") != objects.spec(change.obj).get("taints"):
            self._loop.add(objects.name(change.obj))

    def _instance_changed(self, change: Change) -> None:
        node = objects.status(change.obj).get("nodeName")
        if node:
            self._loop.add(node)

    def _migration_changed(self, change: Change) -> None:
        source = objects.annotations_of(change.obj).get(EVACUATION)
        if source:
            self._loop.add(source)

    async def _reconcile(self, key: str) -> RequeueAfter:
        name, node = key, self._cache.store.get(key)
        if node is None:
            return None
        tainted = any(one.get("key") == TAINT_KUBEVIRT_DRAIN for one in objects.spec(node).get("taints") or ())
        there = [one for one in self._instances.by_index(BY_NODE, name) if not is_final(one)]
        leaving = [one for one in there if tainted or objects.status(one).get("evacuationNodeName") == name]
        for instance in leaving:
            if objects.is_deleting(instance) or self._is_moving(instance):
                continue
            if not objects.is_condition_true(instance, "LiveMigratable"):
                await self._shut_down(instance, name)
            elif self._is_full(name):
                return max(_MIN_INTERVAL, _INTERVAL * self._context.scale)
            else:
                await self._migrate(instance, name)
        return None

    def _is_moving(self, instance: Object) -> bool:
        return any(
            objects.spec(one).get("vmiName") == objects.name(instance)
            and objects.namespace(one) == objects.namespace(instance)
            for one in self._unfinished()
        )

    def _is_full(self, node: str) -> bool:
        running = self._unfinished()
        outbound = [one for one in running if objects.annotations_of(one).get(EVACUATION) == node]
        return len(running) >= IN_CLUSTER or len(outbound) >= FROM_NODE

    def _unfinished(self) -> list[Object]:
        return [one for one in self._migrations.store.list() if not is_final(one)]

    async def _shut_down(self, instance: Object, node: str) -> None:
        """Shut down an evicted VM that cannot migrate; the taint alone does not affect it."""
        if objects.status(instance).get("evacuationNodeName") != node:
            return
        name, namespace = objects.name(instance), objects.namespace(instance)
        try:
            await self._client.delete(VIRTUAL_MACHINE_INSTANCES, name, namespace=namespace, uid=objects.uid(instance))
        except NotFound:
            return

    async def _migrate(self, instance: Object, node: str) -> None:
        migration = {
            "apiVersion": "kubevirt.io/v1",
            "kind": "VirtualMachineInstanceMigration",
            "metadata": {
                "generateName": "kubevirt-evacuation-",
                "namespace": objects.namespace(instance),
                "labels": {VMI_LABEL: objects.name(instance)},
                "annotations": {EVACUATION: node},
            },
            "spec": {"vmiName": objects.name(instance)},
        }
        await self._migrations.seen(await self._client.create(MIGRATIONS, migration))
