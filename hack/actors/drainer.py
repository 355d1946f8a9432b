"""Rancher's drain controller: cordons, waits for the hooks, evicts, and reverts all of it at the end.

The rules are those of rancher/rancher v2.14.0, pkg/controllers/capr/machinedrain/machinedrain.go. Its timeout of a
drain, ten minutes if none is set, is not simulated.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hack.actors import machine_plan as plans
from hack.actors.caches import BY_NODE
from hack.actors.controller import PlanController
from hack.actors.disruption import budgets_of
from hack.actors.machine_plan import (
    DRAIN_DONE,
    DRAIN_ERROR,
    DRAIN_OPTIONS,
    POST_DRAIN,
    PRE_DRAIN,
    UNCORDON,
)
from hack.actors.placement import is_final
from hack.actors.pod_deletion import delete_pod
from hack.actors.pod_status import is_over
from upgrade_manager.api.keys import FLEET_LOCAL
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import NotFound, Terminal
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import (
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

_USER_AGENT = "rancher-drain"
#: Seconds between checks of a node that is being drained.
_LOOK = 0.5
_SHORTEST_LOOK = 0.05
#: Seconds until an error is retried, first and last.
_FIRST_RETRY, _LAST_RETRY = 0.005, 30.0
#: Doublings after which the retry is the last one in any case.
_MOST_DOUBLINGS = 30
_MIRROR = "kubernetes.io/config.mirror"


class CordonError(Exception):
    """The API server refuses to cordon or uncordon a node."""


class Drainer(PlanController):
    """Follows the drain annotations of machine-plan Secrets, one step per reconcile."""

    def __init__(self, context: ActorContext) -> None:
        super().__init__(context, user_agent=_USER_AGENT, loop="drainer")
        caches = context.caches
        self._nodes = caches.of(NODES)
        self._pods = caches.of(PODS)
        self._budgets = caches.of(POD_DISRUPTION_BUDGETS)
        self._instances = caches.of(VIRTUAL_MACHINE_INSTANCES)
        #: Consecutive errors by Secret.
        self._failures: dict[str, int] = {}
        #: The Pods of each node when its drain began; a later Pod tolerates the cordon and stays.
        self._doomed: dict[str, frozenset[str]] = {}

    async def _reconcile(self, key: str) -> RequeueAfter:
        secret = self._cached(key)
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
        # The drain comes before the uncordon, which a planner without drain options may have requested meanwhile.
        is_drained = annotations.get(DRAIN_DONE) == text
        if is_drained and not annotations.get(UNCORDON):
            return None
        try:
            later = await (self._finish if is_drained else self._drain)(secret, node, text)
        except CordonError as error:
            return await self._retry(secret, str(error))
        self._failures.pop(key, None)
        await self._forget_error(key)
        return later

    async def _forget_error(self, key: str) -> None:
        """Remove the error of an earlier attempt, in a separate update."""
        secret = self._cached(key)
        if secret is not None and DRAIN_ERROR in objects.annotations_of(secret):
            await self._annotate(secret, {DRAIN_ERROR: None})

    def _look(self) -> float:
        return max(_SHORTEST_LOOK, _LOOK * self._context.scale)

    async def _drain(self, secret: Object, node: Object, text: str) -> RequeueAfter:
        await self._cordon(node, on=True)
        before = plans.hooks(text, "preDrainHooks")
        if before and not await self._acknowledged(secret, PRE_DRAIN, text, before):
            return None
        if json.loads(text)["enabled"] and not await self._is_empty(objects.name(node), _grace(text)):
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
        try:
            written = await self._client.patch(NODES, objects.name(node), patch)
        except Terminal as error:
            raise CordonError(f"cordon error: {str(error).partition(': ')[2]}") from error
        await self._nodes.seen(written)

    async def _retry(self, secret: Object, error: str) -> RequeueAfter:
        """Record the error once, and retry ever more rarely.

        The delays are those of the recorded run: 5 ms, doubled up to 30 s (lasso's rate limiter, not looked up).
        """
        if objects.annotations_of(secret).get(DRAIN_ERROR) != error:
            await self._annotate(secret, {DRAIN_ERROR: error})
        failures = self._failures.get(objects.name(secret), 0)
        self._failures[objects.name(secret)] = failures + 1
        return max(
            _SHORTEST_LOOK, min(_LAST_RETRY, _FIRST_RETRY * 2.0 ** min(failures, _MOST_DOUBLINGS)) * self._context.scale
        )

    async def _is_empty(self, node: str, grace: int | None) -> bool:
        """Evict the evictable Pods and report whether the drain is complete."""
        pods = [pod for pod in self._pods.by_index(BY_NODE, node) if _is_evictable(pod)]
        machines = [one for one in self._instances.by_index(BY_NODE, node) if not is_final(one)]
        doomed = self._doomed.setdefault(node, frozenset(objects.uid(one) for one in [*pods, *machines]))
        pods = [pod for pod in pods if objects.uid(pod) in doomed]
        machines = [one for one in machines if objects.uid(one) in doomed]
        for pod in pods:
            if not objects.is_deleting(pod) and not self._is_protected(pod):
                await delete_pod(self._context.transport, pod, user_agent=_USER_AGENT, grace=grace)
        for instance in machines:
            if objects.status(instance).get("evacuationNodeName") != node:
                await self._mark(instance, node)
        return not pods and not machines

    def _is_protected(self, pod: Object) -> bool:
        """Report whether the API server refuses the eviction; kubectl's drain retries that until its timeout."""
        budgets = budgets_of(pod, self._budgets.store.list())
        return any(not objects.status(one).get("disruptionsAllowed") for one in budgets)

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


def _grace(text: str) -> int | None:
    """Return the grace period of an eviction: a negative one means the Pod's own (kubectl's drain helper).

    Without one Rancher sets 0, so the API server removes even the Pods of a dead kubelet.
    """
    seconds = int(json.loads(text)["gracePeriod"])
    return None if seconds < 0 else seconds


def _is_evictable(pod: Object) -> bool:
    owners = objects.metadata(pod).get("ownerReferences") or ()
    by_daemon = any(owner.get("kind") == "DaemonSet" for owner in owners)
    return not by_daemon and _MIRROR not in objects.annotations_of(pod) and not is_over(pod)
