"""Harvester's node-down controller: removes the taints of a dead node from every node that is Ready.

The rule is that of harvester/harvester v1.7.0 to v1.8.2 (pkg/controller/master/node/node_down_controller.go), which
spares no upgrade but the built-in one; from v1.9 on an UpgradePlan that has not ended switches it off. Of a built-in
Upgrade, beside which the manager does not run, nothing is simulated. That it takes a tenth of a second is a guess.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.actors.controller import Controller
from upgrade_manager.api.keys import TAINT_KUBEVIRT_DRAIN
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import NODES

if TYPE_CHECKING:
    from hack.actors.context import ActorContext
    from hack.actors.controller_loop import RequeueAfter
    from upgrade_manager.kube.store import Change

_TAINTS = {TAINT_KUBEVIRT_DRAIN, "node.kubernetes.io/out-of-service"}
_SECONDS = 0.1


class NodeDown(Controller[str]):
    """Reconciles every Node at each of its changes."""

    def __init__(self, context: ActorContext) -> None:
        super().__init__(context, NODES, user_agent="harvester", loop="node down", key_of=objects.name)

    def _changed(self, change: Change) -> None:
        self._loop.add(self._key_of(change.obj), after=self._context.seconds(_SECONDS))

    async def _reconcile(self, key: str) -> RequeueAfter:
        node = self._cache.store.get(key)
        if node is None or not objects.is_condition_true(node, "Ready"):
            return None
        taints = objects.spec(node).get("taints") or []
        kept = [taint for taint in taints if taint.get("key") not in _TAINTS]
        if kept != taints:
            patch = MergePatch({"spec": {"taints": kept}}).at(objects.resource_version(node))
            await self._cache.patch(self._client, node, patch, subresource="")
        return None
