"""KubeVirt's migration controller: migrates an instance to another node, or fails and backs off."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from hack.actors.caches import BY_NODE
from hack.actors.controller_loop import ControllerLoop, Timers
from hack.actors.placement import is_final, place
from hack.actors.virtual_machines import launcher_version, running_on
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import NotFound
from upgrade_manager.kube.events import EventRecorder
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import KUBEVIRTS, MIGRATIONS, NODES, VIRTUAL_MACHINE_INSTANCES

if TYPE_CHECKING:
    from hack.actors.context import ActorContext
    from hack.actors.controller_loop import RequeueAfter
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.store import Change

_PHASES = ("", "Pending", "Scheduling", "Scheduled", "PreparingTarget", "TargetReady", "Running")
_LOOK = 2.0
#: The number of finished migrations that are kept per instance.
_KEPT = 5
_FIRST_BACKOFF = 20.0


class MigrationController:
    """Reconciles VirtualMachineInstanceMigrations."""

    def __init__(self, context: ActorContext) -> None:
        self._context = context
        self._client = context.client("virt-controller")
        self._events = EventRecorder(
            self._client, component="virtualmachine-controller", now=context.now, random=context.random
        )
        caches = context.caches
        self._nodes = caches.of(NODES)
        self._instances = caches.of(VIRTUAL_MACHINE_INSTANCES)
        self._migrations = caches.of(MIGRATIONS)
        self._kubevirts = caches.of(KUBEVIRTS)
        self._loop: ControllerLoop[tuple[str, str]] = context.loop("migrations", self._reconcile)
        self._timers = Timers()
        #: The target nodes of unfinished migrations, which count as load.
        self._targets: dict[str, str] = {}
        self._migrations.subscribe(self._migration_changed)

    async def run(self) -> None:
        """Run until cancelled."""
        await self._context.caches.synced()
        for migration in self._migrations.store.list():
            self._loop.add(objects.key(migration))
        async with asyncio.TaskGroup() as group:
            group.create_task(self._events.run(), name="migration events")
            group.create_task(self._loop.run(), name="migrations")

    def _migration_changed(self, change: Change) -> None:
        self._loop.add(objects.key(change.obj))
        if change.kind.value == "deleted":
            self._forget(change.obj)

    def _forget(self, migration: Object) -> None:
        self._timers.forget(objects.uid(migration))
        self._targets.pop(objects.uid(migration), None)

    async def _reconcile(self, key: tuple[str, str]) -> RequeueAfter:
        migration = self._migrations.store.get(key[1], key[0])
        if migration is None or is_final(migration):
            return None
        instance = self._instances.store.get(objects.spec(migration).get("vmiName") or "", key[0])
        if instance is None or is_final(instance):
            await self._finish(migration, "Failed")
            return None
        left = self._timers.left(objects.uid(migration), "backoff", self._backoff(instance))
        if left > 0:
            await self._enter(migration, "Pending")
            return left
        return await self._advance(migration, instance)

    async def _advance(self, migration: Object, instance: Object) -> RequeueAfter:
        phase = objects.status(migration).get("phase") or ""
        step = _PHASES.index(phase) if phase in _PHASES else 0
        if _PHASES[step] == "Scheduling" and not self._target(migration, instance):
            return _LOOK
        seconds = self._context.seconds(self._context.scenario.durations.migration / len(_PHASES))
        left = self._timers.left(objects.uid(migration), phase, seconds)
        if left > 0:
            return left
        if step + 1 < len(_PHASES):
            await self._enter(migration, _PHASES[step + 1])
            return 0.0
        if self._fails(instance):
            self._events.record(
                instance, type_="Warning", reason="FailedMigration", message="VirtualMachineInstance migration failed"
            )
            await self._finish(migration, "Failed")
            return None
        await self._move(migration, instance)
        await self._finish(migration, "Succeeded")
        return None

    def _target(self, migration: Object, instance: Object) -> str:
        uid = objects.uid(migration)
        if uid not in self._targets:
            here = objects.status(instance).get("nodeName") or ""
            target = place(instance, self._nodes.store.list(), self._load, other_than=here)
            if not target:
                return ""
            self._targets[uid] = target
        return self._targets[uid]

    def _load(self, node: str) -> int:
        coming = sum(1 for target in self._targets.values() if target == node)
        return len(self._instances.by_index(BY_NODE, node)) + coming

    def _backoff(self, instance: Object) -> float:
        failures = len(self._failed(instance))
        return _FIRST_BACKOFF * 2.0 ** (failures - 1) * self._context.scale if failures else 0.0

    def _failed(self, instance: Object) -> list[Object]:
        return [one for one in self._finished(instance) if objects.status(one)["phase"] == "Failed"]

    def _finished(self, instance: Object) -> list[Object]:
        return [
            one
            for one in self._migrations.store.list()
            if objects.spec(one).get("vmiName") == objects.name(instance)
            and objects.namespace(one) == objects.namespace(instance)
            and is_final(one)
        ]

    def _fails(self, instance: Object) -> bool:
        machines = self._context.scenario.vms.machines
        allowed = {(one.namespace, one.name): one.failing_migrations for one in machines}
        return len(self._failed(instance)) < allowed.get(objects.key(instance), 0)

    async def _move(self, migration: Object, instance: Object) -> None:
        target, at = self._target(migration, instance), self._context.timestamp()
        body = running_on(target, objects.status(instance), at=at, launcher=launcher_version(self._kubevirts))
        body["status"]["migrationState"] = {
            "sourceNode": objects.status(instance).get("nodeName") or "",
            "targetNode": target,
            "migrationUid": objects.uid(migration),
            "endTimestamp": at,
            "completed": True,
        }
        patch = MergePatch(body).at(objects.resource_version(instance))
        name, namespace = objects.name(instance), objects.namespace(instance)
        await self._instances.seen(
            await self._client.patch(VIRTUAL_MACHINE_INSTANCES, name, patch, namespace=namespace)
        )

    async def _enter(self, migration: Object, phase: str) -> None:
        status = objects.status(migration)
        if status.get("phase") == phase:
            return
        seen = [*(status.get("phaseTransitionTimestamps") or ())]
        seen.append({"phase": phase, "phaseTransitionTimestamp": self._context.timestamp()})
        patch = MergePatch({"status": {"phase": phase, "phaseTransitionTimestamps": seen}})
        await self._migrations.patch(self._client, migration, patch)

    async def _finish(self, migration: Object, phase: str) -> None:
        await self._enter(migration, phase)
        self._forget(migration)
        peers = [
            one
            for one in self._migrations.store.list()
            if objects.spec(one).get("vmiName") == objects.spec(migration).get("vmiName")
            and objects.namespace(one) == objects.namespace(migration)
            and is_final(one)
        ]
        peers.sort(key=lambda one: (objects.metadata(one).get("creationTimestamp") or "", objects.name(one)))
        for old in peers[:-_KEPT]:
            try:
                await self._client.delete(MIGRATIONS, objects.name(old), namespace=objects.namespace(old))
            except NotFound:
                continue
