"""The Pod garbage collector: fails and deletes the Pods of a deleted node after a delay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.actors.caches import BY_NODE
from hack.actors.controller import Controller
from hack.actors.pod_status import ended, is_over
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import NotFound
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import NODES, PODS

if TYPE_CHECKING:
    from hack.actors.context import ActorContext
    from hack.actors.controller_loop import RequeueAfter
    from upgrade_manager.kube.store import Change

#: Seconds before a missing node counts as deleted.
_QUARANTINE = 40.0


class PodCollector(Controller[str]):
    """Fails Pods of deleted nodes; its keys are node names."""

    def __init__(self, context: ActorContext) -> None:
        super().__init__(context, NODES, user_agent="pod-garbage-collector", loop="pod gc", key_of=objects.name)
        self._pods = context.caches.of(PODS)

    async def run(self) -> None:
        """Run until cancelled."""
        await self._context.caches.synced()
        for pod in self._pods.store.list():
            self._loop.add(objects.spec(pod).get("nodeName") or "")
        await self._loop.run()

    def _changed(self, change: Change) -> None:
        if change.kind.value == "deleted":
            super()._changed(change)

    async def _reconcile(self, key: str) -> RequeueAfter:
        node = key
        if not node or self._cache.store.get(node) is not None:
            self._timers.forget(node)
            return None
        left = self._timers.left(node, "quarantine", self._context.seconds(_QUARANTINE))
        if left > 0:
            return left
        for pod in self._pods.by_index(BY_NODE, node):
            if is_over(pod):
                continue
            status = ended(pod, code=137, message="", reason="Error", at=self._context.timestamp())
            status["message"] = "PodGC: node no longer exists"
            name, namespace = objects.name(pod), objects.namespace(pod)
            try:
                await self._client.patch(
                    PODS, name, MergePatch({"status": status}), namespace=namespace, subresource="status"
                )
            except NotFound:
                continue
        return None
