"""Fleet's controller: imports the local cluster again and replaces its agent when that is asked for.

As in rancher/fleet at 881da83d, internal/cmd/controller/agentmanagement/controllers/cluster/import.go (functions
agentDeployed and importCluster): the agent is deployed while status.agentDeployedGeneration equals
spec.redeployAgentGeneration, and an import needs an address of the API server. That v0.15 does the same is a guess.
"""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING

from hack.actors.conditions import with_condition
from hack.actors.controller import NamespacedController
from hack.actors.kinds import FLEET_CLUSTERS
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import AlreadyExists, NotFound
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import CONFIG_MAPS, DEPLOYMENTS

if TYPE_CHECKING:
    from hack.actors.context import ActorContext
    from hack.actors.controller import Key
    from hack.actors.controller_loop import RequeueAfter
    from upgrade_manager.kube.objects import Object

SYSTEM, AGENT_SYSTEM = "cattle-fleet-system", "cattle-fleet-local-system"
_AGENT, _CONFIG = "fleet-agent", "fleet-controller"
_POLL = 1.0


class Fleet(NamespacedController):
    """Reconciles Fleet's clusters."""

    def __init__(self, context: ActorContext) -> None:
        super().__init__(context, FLEET_CLUSTERS, user_agent="fleet-controller", loop="fleet")
        self._deployments = context.caches.of(DEPLOYMENTS)

    async def _reconcile(self, key: Key) -> RequeueAfter:
        cluster = self._cached(key)
        if cluster is None:
            return None
        wanted = objects.spec(cluster).get("redeployAgentGeneration") or 0
        if wanted == (objects.status(cluster).get("agentDeployedGeneration") or 0):
            return None
        config = json.loads((await self._client.get(CONFIG_MAPS, _CONFIG, namespace=SYSTEM))["data"]["config"])
        if not config.get("apiServerURL"):
            missing = "missing apiServerURL in fleet config for cluster auto registration"
            await self._report(cluster, "False", message=missing)
            return self._context.seconds(_POLL)
        left = self._timers.left(objects.uid(cluster), str(wanted), self._context.seconds(1.0))
        if left > 0:
            return left
        await self._replace_agent()
        await self._report(cluster, "True", agentDeployedGeneration=wanted, apiServerURL=config["apiServerURL"])
        return None

    async def _replace_agent(self) -> None:
        agent = self._deployments.store.get(_AGENT, AGENT_SYSTEM)
        if agent is None:
            return
        new = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": _AGENT, "namespace": AGENT_SYSTEM},
            "spec": objects.spec(agent),
        }
        with contextlib.suppress(NotFound):
            await self._client.delete(DEPLOYMENTS, _AGENT, namespace=AGENT_SYSTEM, uid=objects.uid(agent))
        with contextlib.suppress(AlreadyExists):
            await self._client.create(DEPLOYMENTS, new)

    async def _report(self, cluster: Object, state: str, *, message: str = "", **status: object) -> None:
        conditions = objects.status(cluster).get("conditions") or []
        at = self._context.timestamp()
        conditions = with_condition(conditions, "Imported", state, message=message, at=at)
        if status:
            # A changed status updates the time of an equal condition, too: rancher/wrangler v3, generated handlers.
            conditions = [{**one, "lastUpdateTime": at} if one["type"] == "Imported" else one for one in conditions]
        await self._cache.patch(self._client, cluster, MergePatch({"status": {**status, "conditions": conditions}}))
