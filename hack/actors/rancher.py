"""Rancher: reports its version and features, indexes its chart repositories, and upgrades charts that it depends on."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING

from hack.actors.controller import Controller
from hack.actors.fleet import SYSTEM as FLEET_SYSTEM
from hack.actors.helm_storage import HelmStorage, is_blocked
from hack.actors.kinds import CLUSTER_REPOS, RANCHER_SETTINGS
from hack.actors.rancher_features import features_of
from hack.actors.repository import release_of
from upgrade_manager.api.keys import CATTLE_SYSTEM, SETTING_SERVER_VERSION
from upgrade_manager.api.timestamps import parse_time
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import CONFIG_MAPS, DEPLOYMENTS, RANCHER_FEATURES

if TYPE_CHECKING:
    from hack.actors.context import ActorContext
    from hack.actors.controller_loop import RequeueAfter
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.store import Change

_DEPENDENCIES = {"fleet-crd": "cattle-fleet-system", "fleet": "cattle-fleet-system", "rancher-webhook": CATTLE_SYSTEM}
_MULTI_CLUSTER = "multi-cluster-management"
_POLL = 1.0
_SECOND = timedelta(seconds=1)


class Rancher(Controller[str]):
    """Reconciles Rancher's own Deployment and its ClusterRepos."""

    def __init__(self, context: ActorContext) -> None:
        super().__init__(context, CLUSTER_REPOS, user_agent="rancher", loop="rancher", key_of=objects.name)
        self._deployments = context.caches.of(DEPLOYMENTS)
        self._storage = HelmStorage(self._client)
        self._deployments.subscribe(self._deployment_changed)

    def _deployment_changed(self, change: Change) -> None:
        if objects.key(change.obj) == (CATTLE_SYSTEM, "rancher"):
            self._loop.add("")

    async def _reconcile(self, key: str) -> RequeueAfter:
        return await self._index(key) if key else await self._start()

    async def _index(self, name: str) -> RequeueAfter:
        """Download the index of a repository after its spec.forceUpdate."""
        found = self._cache.store.get(name)
        if found is None:
            return None
        wanted = parse_time(objects.spec(found).get("forceUpdate"))
        last = parse_time(objects.status(found).get("downloadTime"))
        if wanted is None or (last is not None and last >= wanted):
            return None
        if wanted > self._context.now():
            return _SECOND.total_seconds()
        left = self._timers.left(name, "index", self._context.seconds(self._context.scenario.durations.chart))
        if left > 0:
            return left
        patch = MergePatch({"status": {"downloadTime": self._context.timestamp()}})
        await self._cache.patch(self._client, found, patch)
        self._timers.forget(name)
        return None

    async def _start(self) -> RequeueAfter:
        """Report the features and the version that run, and bring the dependencies to the release's."""
        deployment = self._deployments.store.get("rancher", CATTLE_SYSTEM)
        if deployment is None or not _is_rolled_out(deployment):
            return None
        container = objects.spec(deployment)["template"]["spec"]["containers"][0]
        version = container["image"].rpartition(":")[2]
        text = next((one["value"] for one in container.get("env") or () if one["name"] == "CATTLE_FEATURES"), "")
        await self._set_default(_MULTI_CLUSTER, value=features_of(version, text)[_MULTI_CLUSTER])
        setting = await self._client.get(RANCHER_SETTINGS, SETTING_SERVER_VERSION)
        if setting.get("value") != version:
            await self._client.patch(RANCHER_SETTINGS, SETTING_SERVER_VERSION, MergePatch({"value": version}))
        if version != self._context.scenario.release.rancher:
            return None
        return await self._upgrade_dependencies()

    async def _set_default(self, name: str, *, value: bool) -> None:
        """Write the default of a Feature, which users may override."""
        found = await self._client.get(RANCHER_FEATURES, name)
        if objects.status(found).get("default") != value:
            await self._client.patch(RANCHER_FEATURES, name, MergePatch({"status": {"default": value}}))

    async def _upgrade_dependencies(self) -> RequeueAfter:
        charts = release_of(self._context.scenario)["rancherDependencies"]
        for name, namespace in _DEPENDENCIES.items():
            revisions = await self._storage.revisions(name, namespace)
            if not revisions or is_blocked(revisions):
                return _POLL
            if revisions[-1]["chart"]["metadata"]["version"] == charts[name]["chart"]:
                continue
            left = self._timers.left("", name, self._context.seconds(self._context.scenario.durations.chart))
            if left > 0:
                return left
            if name == "fleet":
                await self._upgrade_fleet(version=charts[name]["app"])
            await self._storage.deploy(name, namespace, chart=charts[name]["chart"], app=charts[name]["app"])
        return None

    async def _upgrade_fleet(self, *, version: str) -> None:
        """Change the controller's image, and render its configuration without the API server's address.

        That the new chart drops the address is a guess, by what Harvester's upgrade restores: harvester/harvester
        v1.8.0, package/upgrade/upgrade_manifests.sh, line 442.
        """
        config = {
            "agentImage": f"rancher/fleet-agent:v{version}",
            "apiServerURL": "",
            "apiServerCA": "",
            "agentCheckinInterval": "15m",
            "agentTLSMode": "system-store",
        }
        patch = MergePatch({"data": {"config": json.dumps(config)}})
        await self._client.patch(CONFIG_MAPS, "fleet-controller", patch, namespace=FLEET_SYSTEM)
        containers = [{"name": "fleet-controller", "image": f"rancher/fleet:v{version}"}]
        patch = MergePatch({"spec": {"template": {"spec": {"containers": containers}}}})
        await self._client.patch(DEPLOYMENTS, "fleet-controller", patch, namespace=FLEET_SYSTEM)


def _is_rolled_out(deployment: Object) -> bool:
    status = objects.status(deployment)
    observed = status.get("observedGeneration") == objects.metadata(deployment).get("generation")
    return observed and status.get("availableReplicas") == objects.spec(deployment).get("replicas")
