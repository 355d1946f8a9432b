"""The KubeVirt object, as Fleet deploys it from Harvester's chart, and KubeVirt's own upgrade by virt-operator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hack.actors.conditions import TRANSITION, with_condition
from hack.actors.controller import NamespacedController
from hack.actors.repository import release_of
from upgrade_manager.api.keys import FLEET_LOCAL, HARVESTER_SYSTEM
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import KUBEVIRTS, MANAGED_CHARTS

if TYPE_CHECKING:
    from hack.actors.context import ActorContext
    from hack.actors.controller import Key
    from hack.actors.controller_loop import RequeueAfter
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.store import Change

_CHART, _KUBEVIRT = "harvester", "kubevirt"
_UNSEEN = object()
#: The chart's default, as harvester/harvester#9656 names it.
_DEFAULT_METHODS = ["LiveMigrate"]
#: Seconds in which KubeVirt upgrades itself, before scale and jitter.
_START = 1.0
#: Fleet's message, as in harvester/harvester#10677.
_CONFLICT = (
    "conflict occurred while applying object harvester-system/kubevirt kubevirt.io/v1, Kind=KubeVirt: Apply failed "
    "with 1 conflict: .spec.workloadUpdateStrategy.workloadUpdateMethods"
)


class KubeVirtDeployment(NamespacedController):
    """Follows the ManagedChart harvester, each time that Fleet has deployed it.

    Fleet does not change the list of update methods once another client has changed it: harvester/harvester#10677.
    """

    def __init__(self, context: ActorContext) -> None:
        super().__init__(context, MANAGED_CHARTS, user_agent="fleet-agent", loop="kubevirt")
        self._kubevirts = context.caches.of(KUBEVIRTS)
        self._kubevirts.subscribe(self._kubevirt_changed)
        #: The Bundle's generation that is deployed; the chart is deployed when it is first seen.
        self._deployed: int | None = None
        #: The list as Fleet has deployed it last; at first the one that is there.
        self._written: Any = _UNSEEN

    def _changed(self, change: Change) -> None:
        if self._deployed is None and objects.name(change.obj) == _CHART:
            self._deployed = _generation(change.obj)
        super()._changed(change)

    def _kubevirt_changed(self, change: Change) -> None:
        if self._written is _UNSEEN:
            self._written = _methods(change.obj)
        self._loop.add((FLEET_LOCAL, _CHART))

    async def _reconcile(self, key: Key) -> RequeueAfter:
        chart, kubevirt = self._cached(key), self._kubevirts.store.get(_KUBEVIRT, HARVESTER_SYSTEM)
        if key[1] != _CHART or chart is None or kubevirt is None:
            return None
        generation, is_refused = _generation(chart), _is_refused(chart)
        if generation <= (self._deployed or 0) or not (objects.is_condition_true(chart, "Ready") or is_refused):
            return None
        if not await self._configure(chart, kubevirt):
            return None
        if is_refused:
            await self._report(chart, "")
        left = self._timers.left(objects.uid(chart), generation, self._context.seconds(_START))
        if left > 0:
            return left
        release = release_of(self._context.scenario)
        if objects.spec(chart).get("version") == release["harvesterChart"]:
            await self._upgrade(release["kubevirt"])
        self._deployed = generation
        return None

    async def _configure(self, chart: Object, kubevirt: Object) -> bool:
        wanted = objects.value(chart, "spec", "values", "kubevirt", "spec", "workloadUpdateStrategy")
        methods = _DEFAULT_METHODS if wanted is None else objects.value(wanted, "workloadUpdateMethods")
        now = _methods(kubevirt)
        if now == methods:
            self._written = methods
            return True
        if now != self._written:
            await self._report(chart, _CONFLICT)
            return False
        body = {"spec": {"workloadUpdateStrategy": {"workloadUpdateMethods": methods}}}
        await self._kubevirts.patch(self._client, kubevirt, MergePatch(body), subresource="")
        self._written = methods
        return True

    async def _report(self, chart: Object, message: str) -> None:
        """Report the refusal of a deployment; with an empty message, its end."""
        if _is_refused(chart) == bool(message):
            return
        status, at = objects.status(chart), self._context.timestamp()
        state = "False" if message else "True"
        conditions = with_condition(status.get("conditions") or [], "Ready", state, message=message, at=at)
        summary = {"ready": 0 if message else 1, "desiredReady": 1, "notReady": 1 if message else None}
        await self._cache.patch(
            self._client, chart, MergePatch({"status": {"conditions": conditions, "summary": summary}})
        )

    async def _upgrade(self, version: str) -> None:
        kubevirt = self._kubevirts.store.get(_KUBEVIRT, HARVESTER_SYSTEM)
        if kubevirt is None or objects.status(kubevirt).get("observedKubeVirtVersion") == version:
            return
        conditions: list[Object] = objects.status(kubevirt).get("conditions") or []
        for type_, state in (("Available", "True"), ("Progressing", "False"), ("Degraded", "False")):
            conditions = with_condition(conditions, type_, state, at=self._context.timestamp(), time=TRANSITION)
        status = {"phase": "Deployed", "observedKubeVirtVersion": version, "conditions": conditions}
        await self._kubevirts.patch(self._client, kubevirt, MergePatch({"status": status}))


def _generation(chart: Object) -> int:
    return int(objects.status(chart).get("observedGeneration") or 0)


def _methods(kubevirt: Object) -> Any:
    return objects.value(kubevirt, "spec", "workloadUpdateStrategy", "workloadUpdateMethods")


def _is_refused(chart: Object) -> bool:
    return objects.text(objects.condition(chart, "Ready"), "message") == _CONFLICT
