"""rancher-system-agent on every node: applies the plan in the machine's Secret, which may upgrade the kubelet.

It includes Rancher's plan-secret controller, which then marks the plan as applied.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from hack.actors import machine_plan as plans
from hack.actors.controller import Controller
from hack.actors.planner import SECRET_SELECTOR
from upgrade_manager.api.keys import FLEET_LOCAL
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import MACHINES, SECRETS

if TYPE_CHECKING:
    from hack.actors.context import ActorContext
    from hack.actors.controller_loop import RequeueAfter
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.store import Change

#: Seconds between checks of a host that is down.
_LOOK = 1.0


class SystemAgent(Controller[str]):
    """Simulates the agents of all nodes."""

    def __init__(self, context: ActorContext) -> None:
        super().__init__(
            context,
            SECRETS,
            user_agent="rancher-system-agent",
            loop="system agent",
            key_of=objects.name,
            field_selector=SECRET_SELECTOR,
        )
        self._planner = context.client("rancher-plan-secret")
        self._machines = context.caches.of(MACHINES)

    def _changed(self, change: Change) -> None:
        if objects.namespace(change.obj) == FLEET_LOCAL:
            super()._changed(change)

    async def _reconcile(self, key: str) -> RequeueAfter:
        secret = self._cache.store.get(key, FLEET_LOCAL)
        if secret is None or plans.is_in_sync(secret):
            return None
        plan = plans.data(secret, "plan")
        checksum = hashlib.sha256(plan).hexdigest()
        if plans.data(secret, "applied-checksum").decode() == checksum:
            patch = MergePatch({"data": {"appliedPlan": plans.encoded(plan)}})
            await self._seen(await self._planner.patch(SECRETS, key, patch, namespace=FLEET_LOCAL))
            return None
        return await self._apply(secret, plan, checksum)

    async def _apply(self, secret: Object, plan: bytes, checksum: str) -> RequeueAfter:
        node = plans.node_name(secret, self._machines.store)
        if not self._context.hosts.of(node).up:
            return _LOOK
        seconds = self._context.seconds(self._context.scenario.durations.kubelet_upgrade)
        left = self._timers.left(objects.name(secret), checksum, seconds)
        if left > 0:
            return left
        self._timers.forget(objects.name(secret))
        self._context.hosts.upgrade_kubelet(node, plans.kubernetes_of(plan))
        count = int(plans.data(secret, "success-count").decode() or "0") + 1
        data = {
            "applied-checksum": checksum,
            "success-count": str(count),
            "last-apply-time": self._context.timestamp(),
        }
        patch = MergePatch({"data": {key: plans.encoded(value) for key, value in data.items()}})
        await self._seen(await self._client.patch(SECRETS, objects.name(secret), patch, namespace=FLEET_LOCAL))
        return None

    async def _seen(self, written: Object) -> None:
        await self._cache.seen(written)
