"""The base of Rancher's controllers of machine-plan Secrets: plan_secrets.py, system_agent.py and drainer.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.actors.controller import Controller
from hack.actors.machine_plan import SECRET_SELECTOR
from upgrade_manager.api.keys import FLEET_LOCAL
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import MACHINES, SECRETS

if TYPE_CHECKING:
    from hack.actors.context import ActorContext
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.store import Change


class PlanController(Controller[str]):
    """Reconciles the machine-plan Secrets in fleet-local by name; the Machines are cached, too."""

    def __init__(self, context: ActorContext, *, user_agent: str, loop: str) -> None:
        super().__init__(
            context, SECRETS, user_agent=user_agent, loop=loop, key_of=objects.name, field_selector=SECRET_SELECTOR
        )
        self._machines = context.caches.of(MACHINES)

    def _changed(self, change: Change) -> None:
        if objects.namespace(change.obj) == FLEET_LOCAL:
            super()._changed(change)

    def _cached(self, key: str) -> Object | None:
        """Return the cached Secret, None if it does not exist."""
        return self._cache.store.get(key, FLEET_LOCAL)
