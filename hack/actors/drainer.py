"""Rancher's drain controller: cordons, waits for the hooks, evicts, and reverts all of it at the end."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hack.actors import machine_plan as plans
from hack.actors.caches import BY_NODE
from hack.actors.controller import Controller
from hack.actors.disruption import budgets_of
from hack.actors.machine_plan import DRAIN_DONE, DRAIN_OPTIONS, POST_DRAIN, PRE_DRAIN, UNCORDON
from hack.actors.placement import is_final
from hack.actors.planner import SECRET_SELECTOR
from hack.actors.pod_status import is_over
from upgrade_manager.api.keys import FLEET_LOCAL
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import NotFound
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import (
    MACHINES,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    SECRETS,
    VIRTUAL_MACHINE_INSTANCES,
)

if TYPE_CHECKING:
    from hack.actors.context import ActorContext
    from hack.actors.controller_loop import RequeueAfter
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.store import Change

#: Seconds between checks of a node that is being drained.
_LOOK = 0.5
_SHORTEST_LOOK = 0.05
_MIRROR = "kubernetes.io/config.mirror"


class Drainer(Controller[str]):
    """Follows the drain annotations of machine-plan Secrets, one step per reconcile."""

    def __init__(self, context: ActorContext) -> None:
        super().__init__(
            context,
            SECRETS,
            user_agent="rancher-drain",
            loop="drainer",
            key_of=objects.name,
            field_selector=SECRET_SELECTOR,
        )
        caches = context.caches
        self._machines = caches.of(MACHINES)
        self._nodes = caches.of(NODES)
        self._pods = caches.of(PODS)
        self._budgets = caches.of(POD_DISRUPTION_BUDGETS)
        self._instances = caches.of(VIRTUAL_MACHINE_INSTANCES)
        #: The Pods of each node when its drain began; a later Pod tolerates the cordon and stays.
        self._doomed: dict[str, frozenset[str]] = {}

    def _changed(self, change: Change) -> None:
        if objects.namespace(change.obj) == FLEET_LOCAL:
            super()._changed(change)

    async def _reconcile(self, key: str) -> RequeueAfter:
        secret = self._cache.store.get(key, FLEET_LOCAL)
        if secret is None:
            return None
        annotations = objects.annotations_of(secret)
        text = annotations.get(DRAIN_OPTIONS)
        node = self._nodes.store.get(plans.node_name(secret, self._machines.store))
        if not text:
            return None
        if node is None:
            # Rancher fails to get the Node, and retries.
            return self._look()
        if annotations.get(UNCORDON):
            return await self._finish(secret, node, annotations[UNCORDON])
        if annotations.get(DRAIN_DONE) == text:
            return None
        return await self._drain(secret, node, text)

    def _look(self) -> float:
        return max(_SHORTEST_LOOK, _LOOK * self._context.scale)

    async def _drain(self, secret: Object, node: Object, text: str) -> RequeueAfter:
        await self._cordon(node, on=True)
        before = plans.hooks(text, "preDrainHooks")
        if before and not await self._acknowledged(secret, PRE_DRAIN, text, before):
            return None
        if json.loads(text)["enabled"] and not await self._is_empty(objects.name(node)):
            return self._look()
        self._doomed.pop(objects.name(node), None)
        await self._annotate(secret, {DRAIN_DONE: text})
        return None

    async def _finish(self, secret: Object, node: Object, text: str) -> RequeueAfter:
        after = plans.hooks(text, "postDrainHooks")
        if after and not await self._acknowledged(secret, POST_DRAIN, text, after):
            return None
        await self._cordon(node, on=False)
        obsolete = [*plans.ALL, *plans.hooks(text, "preDrainHooks"), *after]
        present = objects.annotations_of(secret)
        await self._annotate(secret, {key: None for key in obsolete if key in present})
        return None

    async def _acknowledged(self, secret: Object, hook: str, text: str, hooks: list[str]) -> bool:
        """Set the hook annotation to the text and report whether all hooks acknowledge that text."""
        annotations = objects.annotations_of(secret)
        if annotations.get(hook) != text:
            await self._annotate(secret, {hook: text})
            return False
        return all(annotations.get(key) == text for key in hooks)

    async def _annotate(self, secret: Object, annotations: dict[str, str] | dict[str, None]) -> None:
        patch = MergePatch({"metadata": {"annotations": annotations}}).at(objects.resource_version(secret))
        written = await self._client.patch(SECRETS, objects.name(secret), patch, namespace=FLEET_LOCAL)
        await self._cache.seen(written)

    async def _cordon(self, node: Object, *, on: bool) -> None:
        if bool(objects.spec(node).get("unschedulable")) == on:
            return
        patch = MergePatch({"spec": {"unschedulable": True if on else None}})
        await self._nodes.seen(await self._client.patch(NODES, objects.name(node), patch))

    async def _is_empty(self, node: str) -> bool:
        """Evict the evictable Pods and report whether the drain is complete."""
        pods = [pod for pod in self._pods.by_index(BY_NODE, node) if _is_evictable(pod)]
        machines = [one for one in self._instances.by_index(BY_NODE, node) if not is_final(one)]
        doomed = self._doomed.setdefault(node, frozenset(objects.uid(one) for one in [*pods, *machines]))
        pods = [pod for pod in pods if objects.uid(pod) in doomed]
        machines = [one for one in machines if objects.uid(one) in doomed]
        for pod in pods:
            if not objects.is_deleting(pod) and not self._is_protected(pod):
                await self._evict(pod)
        for instance in machines:
            if objects.status(instance).get("evacuationNodeName") != node:
                await self._mark(instance, node)
        return not pods and not machines

    def _is_protected(self, pod: Object) -> bool:
        """Report whether the API server refuses the eviction; kubectl's drain retries that until its timeout."""
        budgets = budgets_of(pod, self._budgets.store.list())
        return any(not objects.status(one).get("disruptionsAllowed") for one in budgets)

    async def _evict(self, pod: Object) -> None:
        try:
            await self._client.delete(PODS, objects.name(pod), namespace=objects.namespace(pod), uid=objects.uid(pod))
        except NotFound:
            return

    async def _mark(self, instance: Object, node: str) -> None:
        """Mark the instance for evacuation, as KubeVirt's webhook does on an eviction of its launcher Pod."""
        patch = MergePatch({"status": {"evacuationNodeName": node}}).at(objects.resource_version(instance))
        name, namespace = objects.name(instance), objects.namespace(instance)
        try:
            await self._instances.seen(
                await self._client.patch(VIRTUAL_MACHINE_INSTANCES, name, patch, namespace=namespace)
            )
        except NotFound:
            return


def _is_evictable(pod: Object) -> bool:
    owners = objects.metadata(pod).get("ownerReferences") or ()
    by_daemon = any(owner.get("kind") == "DaemonSet" for owner in owners)
    return not by_daemon and _MIRROR not in objects.annotations_of(pod) and not is_over(pod)
