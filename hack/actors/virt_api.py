"""KubeVirt's virt-api: labels each new migration with its instance, whatever virt-controller does.

On the embedded API server a stage of admission simulates its mutating webhook; on a real one an actor labels what it
sees.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.actors.controller import NamespacedController
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import MIGRATIONS

if TYPE_CHECKING:
    from hack.actors.context import ActorContext
    from hack.actors.controller import Key
    from hack.actors.controller_loop import RequeueAfter
    from hack.apiserver.admission import Operation, WriteOptions
    from hack.apiserver.resources import Row
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.store import Change

VMI_LABEL = "kubevirt.io/vmi-name"


def migration_stage(row: Row, new: Object, old: Object | None, operation: Operation, options: WriteOptions) -> Object:
    """Label a new migration; a mutating stage."""
    _ = (old, options)
    if operation != "CREATE" or row.resource.name != MIGRATIONS.name:
        return new
    labels = objects.labels(new) | {VMI_LABEL: objects.spec(new).get("vmiName") or ""}
    return new | {"metadata": new["metadata"] | {"labels": labels}}


class VirtApi(NamespacedController):
    """Labels migrations after their creation, on an API server without that stage."""

    def __init__(self, context: ActorContext) -> None:
        super().__init__(context, MIGRATIONS, user_agent="virt-api", loop="virt-api")

    def _changed(self, change: Change) -> None:
        if VMI_LABEL not in objects.labels(change.obj):
            super()._changed(change)

    async def _reconcile(self, key: Key) -> RequeueAfter:
        migration = self._cached(key)
        if migration is not None and VMI_LABEL not in objects.labels(migration):
            labels = {VMI_LABEL: objects.spec(migration).get("vmiName") or ""}
            patch = MergePatch({"metadata": {"uid": objects.uid(migration), "labels": labels}})
            await self._cache.patch(self._client, migration, patch, subresource="")
        return None
