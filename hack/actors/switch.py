"""Lets kubectl freeze actors: ConfigMaps in kube-system with the key `frozen`, for demos."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from hack.actors.container_work import process_of
from hack.actors.controller import NamespacedController
from hack.actors.freezer import PROCESSES
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import NotFound
from upgrade_manager.kube.resources import CONFIG_MAPS, PODS
from upgrade_manager.kube.store import ChangeKind

if TYPE_CHECKING:
    from hack.actors.context import ActorContext
    from hack.actors.controller import Key
    from hack.actors.controller_loop import RequeueAfter
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.store import Change

NAMESPACE = "kube-system"
#: Its value is the name of an actor, a process, a kubelet or a boot loader.
KEY = "frozen"


#: Both deployment controllers label the Pods of each template.
_TEMPLATE = "pod-template-hash"


class FreezerSwitch(NamespacedController):
    """Freezes what a ConfigMap names, until it is deleted.

    A restart ends a hanging process: the ConfigMap is deleted when one of the Pods that hang is, or when a Pod of
    another template runs.
    """

    def __init__(self, context: ActorContext) -> None:
        super().__init__(context, CONFIG_MAPS, user_agent="freezer-switch", loop="switch")
        self._freezer = context.freezer
        self._pods = context.caches.of(PODS)
        #: The actors that each ConfigMap freezes.
        self._frozen: dict[str, str] = {}
        #: For each ConfigMap, the Pods that hang: the template by uid.
        self._hung: dict[str, dict[str, str]] = {}
        #: ConfigMaps whose process was restarted.
        self._restarted: set[str] = set()
        self._pods.subscribe(self._pod_changed)

    def _pod_changed(self, change: Change) -> None:
        for name, frozen in self._frozen.items():
            if _is_process(change.obj, frozen) and _is_restart(change, self._hung[name]):
                self._restarted.add(name)
                self._loop.add((NAMESPACE, name))

    async def _reconcile(self, key: Key) -> RequeueAfter:
        namespace, name = key
        if namespace != NAMESPACE:
            return None
        if name in self._restarted:
            await self._thaw_restarted(name)
            return None
        found = self._cached(key) or {}
        wanted = str((found.get("data") or {}).get(KEY) or "")
        before = self._frozen.pop(name, "")
        if wanted:
            self._freeze(name, wanted)
        if before and before != wanted:
            self._freezer.thaw(before, by=name)
        return None

    async def _thaw_restarted(self, name: str) -> None:
        with contextlib.suppress(NotFound):
            await self._client.delete(CONFIG_MAPS, name, namespace=NAMESPACE)
        self._restarted.discard(name)
        self._freezer.thaw(self._frozen.pop(name, ""), by=name)

    def _freeze(self, name: str, wanted: str) -> None:
        pods = [pod for pod in self._pods.store.list() if _is_process(pod, wanted) and not objects.is_deleting(pod)]
        self._hung[name] = {objects.uid(pod): objects.labels(pod)[_TEMPLATE] for pod in pods}
        self._frozen[name] = wanted
        self._freezer.freeze(wanted, by=name)


def _is_process(pod: Object, frozen: str) -> bool:
    return _TEMPLATE in objects.labels(pod) and process_of(pod) == PROCESSES.get(frozen, frozen)


def _is_restart(change: Change, hung: dict[str, str]) -> bool:
    """Report whether a Pod replaces those that hang; a further Pod of their template hangs, too."""
    pod, uid = change.obj, objects.uid(change.obj)
    if change.kind is ChangeKind.DELETED or objects.is_deleting(pod):
        return uid in hung
    template = objects.labels(pod)[_TEMPLATE]
    if hung and template not in hung.values():
        return objects.status(pod).get("phase") == "Running"
    hung[uid] = template
    return False
