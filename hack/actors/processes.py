"""Ties controllers to their Deployments: without an available Pod, a controller does not run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.actors.controller import NamespacedController
from hack.actors.freezer import NAMESPACES
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import DEPLOYMENTS

if TYPE_CHECKING:
    from hack.actors.context import ActorContext
    from hack.actors.controller import Key
    from hack.actors.controller_loop import RequeueAfter


class ProcessController(NamespacedController):
    """Follows the Deployments whose processes are simulated by actors."""

    def __init__(self, context: ActorContext) -> None:
        super().__init__(context, DEPLOYMENTS, user_agent="processes", loop="processes")

    async def _reconcile(self, key: Key) -> RequeueAfter:
        namespace, name = key
        if NAMESPACES.get(name) != namespace:
            return None
        deployment = self._cached(key)
        is_running = deployment is None or bool(objects.status(deployment).get("availableReplicas"))
        self._context.freezer.set_running(name, is_running=is_running)
        return None
