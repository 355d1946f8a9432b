"""Harvester's addon controller: the state of an Addon follows spec.enabled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.actors.conditions import with_condition
from hack.actors.controller import NamespacedController
from hack.actors.helm_storage import HelmStorage
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import ADDONS

if TYPE_CHECKING:
    from hack.actors.context import ActorContext
    from hack.actors.controller import Key
    from hack.actors.controller_loop import RequeueAfter
    from upgrade_manager.kube.objects import Object

#: The final states, the transitional state, and the final state that follows it.
_ON = ({"AddonDeploySuccessful"}, "AddonEnabling", "AddonDeploySuccessful")
_OFF = ({"", "AddonDisabled"}, "AddonDisabling", "AddonDisabled")


class AddonController(NamespacedController):
    """Reconciles the Addons of all namespaces."""

    def __init__(self, context: ActorContext) -> None:
        super().__init__(context, ADDONS, user_agent="harvester-addon-controller", loop="addons")
        self._storage = HelmStorage(self._client)
        #: The version of the chart that an enabled add-on runs, by uid.
        self._deployed: dict[str, str] = {}

    async def _reconcile(self, key: Key) -> RequeueAfter:
        addon = self._cached(key)
        if addon is None:
            return None
        settled, moving, end = _ON if objects.spec(addon).get("enabled") else _OFF
        state = objects.status(addon).get("status") or ""
        if self._is_outdated(addon):
            settled, moving = set(), "AddonUpdating"
        if state in settled:
            self._timers.forget(objects.uid(addon))
            return None
        if state != moving:
            await self._write(addon, moving)
            return 0.0
        seconds = self._context.seconds(self._context.scenario.durations.addon)
        left = self._timers.left(objects.uid(addon), moving, seconds)
        if left > 0:
            return left
        await self._deploy(addon)
        await self._write(addon, end)
        return None

    def _is_outdated(self, addon: Object) -> bool:
        """Report whether an enabled add-on runs another chart; the first one that is seen runs."""
        version = objects.spec(addon).get("version") or ""
        if not objects.spec(addon).get("enabled"):
            return False
        return self._deployed.setdefault(objects.uid(addon), version) != version

    async def _deploy(self, addon: Object) -> None:
        version = objects.spec(addon).get("version") or ""
        if not self._is_outdated(addon):
            return
        if self._context.scenario.services:
            await self._storage.deploy(objects.name(addon), objects.namespace(addon), chart=version, app=version)
        self._deployed[objects.uid(addon)] = version

    async def _write(self, addon: Object, state: str) -> None:
        at = self._context.timestamp()
        done = state in {"AddonDeploySuccessful", "AddonDisabled"}
        conditions = objects.status(addon).get("conditions") or []
        conditions = with_condition(conditions, "InProgress", "False" if done else "True", at=at)
        conditions = with_condition(conditions, "Completed", "True" if done else "False", at=at)
        conditions = with_condition(conditions, "OperationFailed", "False", at=at)
        patch = MergePatch({"status": {"status": state, "conditions": conditions}})
        await self._cache.patch(self._client, addon, patch)
