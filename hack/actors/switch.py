"""Lets kubectl freeze actors: ConfigMaps in kube-system with the key `frozen`, for demos."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import CONFIG_MAPS

if TYPE_CHECKING:
    from hack.actors.context import ActorContext
    from hack.actors.controller_loop import RequeueAfter
    from upgrade_manager.kube.store import Change

NAMESPACE = "kube-system"
#: Its value is the name of an actor, a process, a kubelet or a boot loader.
KEY = "frozen"


class FreezerSwitch:
    """Freezes what a ConfigMap names, until it is deleted."""

    def __init__(self, context: ActorContext) -> None:
        self._freezer = context.freezer
        self._context = context
        self._maps = context.caches.of(CONFIG_MAPS)
        self._loop = context.loop("switch", self._follow)
        #: What each ConfigMap freezes.
        self._frozen: dict[str, str] = {}
        self._maps.subscribe(self._changed)

    async def run(self) -> None:
        """Run until cancelled."""
        await self._context.run_loop(self._loop, self._maps, objects.key)

    def _changed(self, change: Change) -> None:
        self._loop.add(objects.key(change.obj))

    async def _follow(self, key: tuple[str, str]) -> RequeueAfter:
        namespace, name = key
        if namespace != NAMESPACE:
            return None
        found = self._maps.store.get(name, namespace) or {}
        wanted = str((found.get("data") or {}).get(KEY) or "")
        before = self._frozen.pop(name, "")
        if wanted:
            self._frozen[name] = wanted
            self._freezer.freeze(wanted, by=name)
        if before and before != wanted:
            self._freezer.thaw(before, by=name)
        return None
