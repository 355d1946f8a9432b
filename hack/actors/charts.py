"""Rancher's ManagedCharts with Fleet: the status of a changed chart is stale, then not ready, then ready."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.actors.conditions import with_condition
from hack.actors.controller import NamespacedController
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import MANAGED_CHARTS

if TYPE_CHECKING:
    from hack.actors.context import ActorContext
    from hack.actors.controller import Key
    from hack.actors.controller_loop import RequeueAfter
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.store import Change


class ChartController(NamespacedController):
    """Reconciles ManagedCharts; their observedGeneration is the Bundle's and only grows."""

    def __init__(self, context: ActorContext) -> None:
        super().__init__(context, MANAGED_CHARTS, user_agent="rancher-managed-chart", loop="charts")
        #: The deployed generation of each chart by uid; a chart that is ready when it is first seen is deployed.
        self._deployed: dict[str, int] = {}

    def _changed(self, change: Change) -> None:
        is_ready = objects.is_condition_true(change.obj, "Ready")
        self._deployed.setdefault(objects.uid(change.obj), _generation(change.obj) if is_ready else 0)
        super()._changed(change)

    async def _reconcile(self, key: Key) -> RequeueAfter:
        chart = self._cached(key)
        if chart is None or objects.spec(chart).get("paused"):
            return None
        uid, generation = objects.uid(chart), _generation(chart)
        if self._deployed[uid] == generation:
            return None
        half = self._context.scenario.durations.chart / 2
        left = self._timers.left(uid, ("stale", generation), self._context.seconds(half))
        if left > 0:
            return left
        if objects.is_condition_true(chart, "Ready"):
            await self._write(chart, up=False)
            # The next write begins with the number that this one has raised.
            return 0.0
        left = self._timers.left(uid, ("deploy", generation), self._context.seconds(half))
        if left > 0:
            return left
        await self._write(chart, up=True)
        self._deployed[uid] = generation
        self._timers.forget(uid)
        return 0.0

    async def _write(self, chart: Object, *, up: bool) -> None:
        status, at = objects.status(chart), self._context.timestamp()
        conditions = status.get("conditions") or []
        message = "" if up else "NotReady(1) [Cluster fleet-local/local]"
        conditions = with_condition(conditions, "Ready", "True" if up else "False", message=message, at=at)
        conditions = with_condition(conditions, "Defined", "True", at=at)
        body = {
            "conditions": conditions,
            "summary": {"ready": 1 if up else 0, "desiredReady": 1, "notReady": None if up else 1},
            "display": {"readyClusters": "1/1" if up else "0/1"},
            "observedGeneration": int(status.get("observedGeneration") or 0) + (0 if up else 1),
        }
        patch = MergePatch({"status": body})
        await self._cache.patch(self._client, chart, patch)


def _generation(chart: Object) -> int:
    return int(objects.metadata(chart).get("generation") or 1)
