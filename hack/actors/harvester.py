"""The services that Harvester's chart deploys, beside KubeVirt (kubevirt.py): Longhorn's manager, and Harvester."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from hack.actors.controller import NamespacedController
from hack.actors.kinds import DAEMON_SETS, INSTANCE_MANAGERS
from hack.actors.repository import release_of
from upgrade_manager.api.keys import LONGHORN_SYSTEM, SETTING_SERVER_VERSION
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import AlreadyExists
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import MANAGED_CHARTS, SETTINGS

if TYPE_CHECKING:
    from hack.actors.context import ActorContext
    from hack.actors.controller import Key
    from hack.actors.controller_loop import RequeueAfter
    from upgrade_manager.kube.objects import Object

_CHART = "harvester"
#: The default of v1.8's Setting overcommit-config.
_OVERCOMMIT = '{"cpu":1000,"memory":150,"storage":200}'
#: Longhorn's version in v1.8.0.
_LONGHORN = "v1.11.1"


class Harvester(NamespacedController):
    """Follows the ManagedChart harvester, each time that Fleet has deployed it."""

    def __init__(self, context: ActorContext) -> None:
        super().__init__(context, MANAGED_CHARTS, user_agent="harvester", loop="harvester")
        #: Fleet's generation of the previous chart: while it stays, the status is stale.
        self._before = 0

    async def _reconcile(self, key: Key) -> RequeueAfter:
        chart = self._cached(key)
        if key[1] != _CHART or chart is None or not objects.is_condition_true(chart, "Ready"):
            return None
        release = release_of(self._context.scenario)
        generation = int(objects.status(chart).get("observedGeneration") or 0)
        if objects.spec(chart).get("version") != release["harvesterChart"]:
            self._before = generation
            return None
        if generation <= self._before:
            return None
        left = self._timers.left(objects.uid(chart), "start", self._context.seconds(1.0))
        if left > 0:
            return left
        await self._start_longhorn(release["harvester"])
        await self._client.patch(SETTINGS, "overcommit-config", MergePatch({"default": _OVERCOMMIT}))
        await self._client.patch(SETTINGS, SETTING_SERVER_VERSION, MergePatch({"value": release["harvester"]}))
        return None

    async def _start_longhorn(self, version: str) -> None:
        annotations = {"release": version}
        image = f"longhornio/longhorn-instance-manager:{_LONGHORN}"
        container = {
            "name": "longhorn-manager",
            "image": f"longhornio/longhorn-manager:{_LONGHORN}",
            "command": ["longhorn-manager", "daemon", "--instance-manager-image", image],
        }
        template = {"metadata": {"annotations": annotations}, "spec": {"containers": [container]}}
        body: Object = {"spec": {"template": template}}
        name, namespace = "longhorn-manager", LONGHORN_SYSTEM
        written = await self._client.patch(DAEMON_SETS, name, MergePatch(body), namespace=namespace)
        status = MergePatch({"status": {"observedGeneration": objects.metadata(written)["generation"]}})
        await self._client.patch(DAEMON_SETS, name, status, namespace=namespace, subresource="status")
        await self._start_instance_managers(image)

    async def _start_instance_managers(self, image: str) -> None:
        """Create one on each node, as Longhorn's manager does for a new image; old ones stay until they are unused."""
        for node in self._context.scenario.nodes.for_machines:
            spec = {"dataEngine": "v1", "type": "aio", "nodeID": node, "image": image}
            metadata = {"name": f"instance-manager-new-{node}", "namespace": LONGHORN_SYSTEM}
            manager = INSTANCE_MANAGERS.with_type_meta({"metadata": metadata, "spec": spec})
            with contextlib.suppress(AlreadyExists):
                await self._client.create(INSTANCE_MANAGERS, manager)
            running = MergePatch({"status": {"currentState": "running"}})
            await self._client.patch(
                INSTANCE_MANAGERS, metadata["name"], running, namespace=LONGHORN_SYSTEM, subresource="status"
            )
