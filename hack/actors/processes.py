"""Ties controllers to their Deployments: without an available Pod, a controller does not run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.actors.freezer import NAMESPACES
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import DEPLOYMENTS

if TYPE_CHECKING:
    from hack.actors.context import ActorContext
    from hack.actors.controller_loop import RequeueAfter
    from upgrade_manager.kube.store import Change


class ProcessController:
    """Follows the Deployments whose processes are simulated by actors."""

    def __init__(self, context: ActorContext) -> None:
        self._context = context
        self._deployments = context.caches.of(DEPLOYMENTS)
        self._loop = context.loop("processes", self._follow)
        self._deployments.subscribe(self._changed)

    async def run(self) -> None:
        """Run until cancelled."""
        await self._context.run_loop(self._loop, self._deployments, objects.key)

    def _changed(self, change: Change) -> None:
        self._loop.add(objects.key(change.obj))

    async def _follow(self, key: tuple[str, str]) -> RequeueAfter:
        namespace, name = key
        if NAMESPACES.get(name) != namespace:
            return None
        deployment = self._deployments.store.get(name, namespace)
        is_running = deployment is None or bool(objects.status(deployment).get("availableReplicas"))
        self._context.freezer.set_running(name, is_running=is_running)
        return None
