"""Longhorn: volumes attach with their VMs, and are degraded while a node with a replica is down.

A failed replica is rebuilt on its node, if the node has a disk for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.actors.caches import BY_VOLUME
from hack.actors.controller import Controller
from hack.actors.kinds import LONGHORN_NODES
from hack.actors.longhorn_disks import conditions, longhorn_node, refusal
from hack.actors.placement import is_final
from upgrade_manager.api.keys import LONGHORN_SYSTEM
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import NotFound
from upgrade_manager.kube.patch import MergePatch, merge_diff
from upgrade_manager.kube.resources import LONGHORN_ENGINES, LONGHORN_VOLUMES, VIRTUAL_MACHINE_INSTANCES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hack.actors.context import ActorContext
    from hack.actors.controller_loop import RequeueAfter
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.resources import Resource
    from upgrade_manager.kube.store import Change


def replica_name(volume: str, node: str) -> str:
    """Return the name of a volume's replica on a node."""
    return f"{volume}-r-{node}"


class LonghornManager(Controller[str]):
    """Reconciles Volumes and their Engines; the replicas' modes are kept in the Engine's status."""

    def __init__(self, context: ActorContext) -> None:
        super().__init__(context, LONGHORN_VOLUMES, user_agent="longhorn-manager", loop="volumes", key_of=objects.name)
        caches = context.caches
        self._engines = caches.of(LONGHORN_ENGINES)
        self._instances = caches.of(VIRTUAL_MACHINE_INSTANCES)
        #: Without it, no disk has tags.
        self._nodes = caches.of(LONGHORN_NODES) if context.scenario.operators else None
        #: Volumes by claim; a claim keeps its volume.
        self._by_claim: dict[tuple[str, str], str] = {}
        #: Volumes by the nodes with a replica.
        self._by_node: dict[str, dict[str, None]] = {}
        self._engines.subscribe(self._engine_changed)
        self._instances.subscribe(self._instance_changed)
        if self._nodes is not None:
            self._nodes.subscribe(lambda change: self._host_changed(objects.name(change.obj)))
        context.hosts.subscribe(self._host_changed)

    def _changed(self, change: Change) -> None:
        claim = objects.status(change.obj).get("kubernetesStatus") or {}
        self._by_claim[claim.get("namespace") or "", claim.get("pvcName") or ""] = objects.name(change.obj)
        super()._changed(change)

    def _engine_changed(self, change: Change) -> None:
        volume = objects.spec(change.obj).get("volumeName") or ""
        modes = objects.status(change.obj).get("replicaModeMap") or {}
        for replica in modes:
            self._by_node.setdefault(replica.removeprefix(f"{volume}-r-"), {})[volume] = None
        if any(mode != "RW" for mode in modes.values()):
            # A host may be up again before its replica is seen as failed.
            self._loop.add(volume)

    def _instance_changed(self, change: Change) -> None:
        old, new = objects.status(change.old or {}), objects.status(change.obj)
        if change.kind.value == "updated" and all(old.get(key) == new.get(key) for key in ("nodeName", "phase")):
            return
        for claim in _claims(change.obj):
            if claim in self._by_claim:
                self._loop.add(self._by_claim[claim])

    def _host_changed(self, node: str) -> None:
        for volume in self._by_node.get(node, ()):
            self._loop.add(volume)

    async def _reconcile(self, key: str) -> RequeueAfter:
        volume = self._cache.store.get(key, LONGHORN_SYSTEM)
        engines = self._engines.by_index(BY_VOLUME, key)
        if volume is None or not engines:
            return None
        node = self._user_of(volume)
        refusals = self._refusals(volume, engines[0])
        modes, later = self._modes(engines[0], refusals)
        running = "running" if node else "stopped"
        await self._write(LONGHORN_ENGINES, engines[0], node, {"currentState": running, "replicaModeMap": modes})
        sound = all(mode == "RW" for mode in modes.values())
        robustness = ("healthy" if sound else "degraded") if node else "unknown"
        status: Object = {"state": "attached" if node else "detached", "robustness": robustness, "currentNodeID": node}
        if refusals or "ERR" not in modes.values():
            status["conditions"] = conditions(volume, refusals.values(), at=self._context.timestamp())
        await self._write(LONGHORN_VOLUMES, volume, node, status)
        return later

    def _user_of(self, volume: Object) -> str:
        """Return the node that the volume is attached to: the node of the VM that uses it."""
        claim = objects.status(volume).get("kubernetesStatus") or {}
        for user in claim.get("workloadsStatus") or ():
            instance = self._instances.store.get(user.get("workloadName") or "", claim.get("namespace") or "")
            if instance is not None and not is_final(instance):
                return objects.status(instance).get("nodeName") or ""
        return ""

    def _refusals(self, volume: Object, engine: Object) -> dict[str, str]:
        """Return why Longhorn does not rebuild failed replicas on nodes that are up, by replica."""
        found = {}
        for replica, mode in (objects.status(engine).get("replicaModeMap") or {}).items():
            node = replica.removeprefix(f"{objects.name(volume)}-r-")
            if mode == "ERR" and self._context.hosts.of(node).up:
                found[replica] = refusal(volume, self._node(node))
        return {replica: why for replica, why in found.items() if why}

    def _node(self, name: str) -> Object | None:
        return longhorn_node(name) if self._nodes is None else self._nodes.store.get(name, LONGHORN_SYSTEM)

    def _modes(self, engine: Object, refusals: Mapping[str, str]) -> tuple[dict[str, str], RequeueAfter]:
        """Return the replicas' current modes, and the seconds until the next rebuild completes."""
        volume = objects.spec(engine).get("volumeName") or ""
        waits: list[float] = []
        modes: dict[str, str] = {}
        for replica, mode in (objects.status(engine).get("replicaModeMap") or {}).items():
            is_up = self._context.hosts.of(replica.removeprefix(f"{volume}-r-")).up
            if not is_up or replica in refusals:
                self._timers.stop(volume, replica)
                modes[replica] = "ERR"
                continue
            seconds = self._context.seconds(self._context.scenario.durations.replica_rebuild)
            left = self._timers.left(volume, replica, seconds) if mode != "RW" else 0
            modes[replica] = "WO" if left else "RW"
            waits += [left] if left else []
        return modes, min(waits, default=None)

    async def _write(self, resource: Resource, obj: Object, node: str, status: Object) -> None:
        name, namespace = objects.name(obj), objects.namespace(obj)
        known = objects.status(obj)
        difference = merge_diff({key: known.get(key) for key in status}, status)
        try:
            if (objects.spec(obj).get("nodeID") or "") != node:
                patch = MergePatch({"spec": {"nodeID": node}})
                await self._client.patch(resource, name, patch, namespace=namespace)
            if difference:
                patch = MergePatch({"status": difference})
                await self._client.patch(resource, name, patch, namespace=namespace, subresource="status")
        except NotFound:
            return


def _claims(instance: Object) -> list[tuple[str, str]]:
    volumes = objects.spec(instance).get("volumes") or ()
    names = [(volume.get("persistentVolumeClaim") or {}).get("claimName") for volume in volumes]
    return [(objects.namespace(instance), name) for name in names if name]
