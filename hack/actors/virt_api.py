"""KubeVirt's virt-api: labels each new migration with its instance, whatever virt-controller does.

On the embedded API server a stage of admission simulates its mutating webhook; on a real one an actor labels what it
sees.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import MIGRATIONS

if TYPE_CHECKING:
    from hack.actors.context import ActorContext
    from hack.actors.controller_loop import ControllerLoop, RequeueAfter
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


class VirtApi:
    """Labels migrations after their creation, on an API server without that stage."""

    def __init__(self, context: ActorContext) -> None:
        self._context = context
        self._client = context.client("virt-api")
        self._migrations = context.caches.of(MIGRATIONS)
        self._loop: ControllerLoop[tuple[str, str]] = context.loop("virt-api", self._reconcile)
        self._migrations.subscribe(self._migration_changed)

    async def run(self) -> None:
        """Run until cancelled."""
        await self._context.run_loop(self._loop, self._migrations, objects.key)

    def _migration_changed(self, change: Change) -> None:
        if VMI_LABEL not in objects.labels(change.obj):
            self._loop.add(objects.key(change.obj))

    async def _reconcile(self, key: tuple[str, str]) -> RequeueAfter:
        migration = self._migrations.store.get(key[1], key[0])
        if migration is not None and VMI_LABEL not in objects.labels(migration):
            labels = {VMI_LABEL: objects.spec(migration).get("vmiName") or ""}
            patch = MergePatch({"metadata": {"uid": objects.uid(migration), "labels": labels}})
            await self._migrations.patch(self._client, migration, patch, subresource="")
        return None
