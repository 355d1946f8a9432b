"""KubeVirt's workload updater: migrates VMs whose launcher is older than KubeVirt.

By kubevirt/kubevirt 04be9c2ced7a pkg/virt-controller/watch/workload-updater/workload-updater.go, `getUpdateData`,
`execute` and `sync`. It needs a KubeVirt that is deployed and the method LiveMigrate, takes running VMs that can
migrate and that no migration moves, and creates no more migrations than run in parallel in a cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.actors.controller import NamespacedController
from hack.actors.evacuation import IN_CLUSTER
from hack.actors.placement import is_final
from hack.actors.virt_api import VMI_LABEL
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import KUBEVIRTS, MIGRATIONS, VIRTUAL_MACHINE_INSTANCES

if TYPE_CHECKING:
    from hack.actors.context import ActorContext
    from hack.actors.controller import Key
    from hack.actors.controller_loop import RequeueAfter
    from upgrade_manager.kube.objects import Object

#: Of the migrations' names and annotations.
PREFIX = "kubevirt-workload-update-"
ANNOTATION = "kubevirt.io/workloadUpdateMigration"
#: Seconds between two looks while VMs are outdated, before the time scale: `periodicReEnqueueIntervalSeconds`.
_AGAIN = 30.0
_LEAST = 0.1


class WorkloadUpdater(NamespacedController):
    """Reconciles the KubeVirt object."""

    def __init__(self, context: ActorContext) -> None:
        super().__init__(context, KUBEVIRTS, user_agent="virt-controller", loop="workload updates")
        self._instances = context.caches.of(VIRTUAL_MACHINE_INSTANCES)
        self._migrations = context.caches.of(MIGRATIONS)

    async def _reconcile(self, key: Key) -> RequeueAfter:
        kubevirt = self._cached(key)
        if kubevirt is None or objects.status(kubevirt).get("phase") != "Deployed":
            return None
        if "LiveMigrate" not in objects.items(kubevirt, "spec", "workloadUpdateStrategy", "workloadUpdateMethods"):
            return None
        running = [one for one in self._migrations.store.list() if not is_final(one)]
        moving = {(objects.namespace(one), objects.spec(one).get("vmiName")) for one in running}
        version = objects.status(kubevirt).get("observedKubeVirtVersion")
        outdated = [one for one in self._instances.store.list() if _is_outdated(one, version)]
        idle = sorted((one for one in outdated if objects.key(one) not in moving), key=objects.key)
        for instance in idle[: max(0, IN_CLUSTER - len(running))]:
            await self._migrate(instance)
        return max(_LEAST, _AGAIN * self._context.scale) if outdated else None

    async def _migrate(self, instance: Object) -> None:
        migration = {
            "apiVersion": "kubevirt.io/v1",
            "kind": "VirtualMachineInstanceMigration",
            "metadata": {
                "generateName": PREFIX,
                "namespace": objects.namespace(instance),
                "labels": {VMI_LABEL: objects.name(instance)},
                "annotations": {ANNOTATION: ""},
            },
            "spec": {"vmiName": objects.name(instance)},
        }
        await self._migrations.seen(await self._client.create(MIGRATIONS, migration))


def _is_outdated(instance: Object, version: str | None) -> bool:
    status = objects.status(instance)
    launcher = status.get("launcherContainerImageVersion")
    can_move = objects.is_condition_true(instance, "LiveMigratable") and not objects.is_deleting(instance)
    return status.get("phase") == "Running" and can_move and launcher not in {None, "", version}
