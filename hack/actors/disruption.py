"""The disruption controller: how many Pods of a PodDisruptionBudget may be evicted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.actors.controller import NamespacedController
from hack.actors.pod_status import is_over, is_ready
from hack.apiserver.selectors import selects
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch, merge_diff
from upgrade_manager.kube.resources import POD_DISRUPTION_BUDGETS, PODS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hack.actors.context import ActorContext
    from hack.actors.controller import Key
    from hack.actors.controller_loop import RequeueAfter
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.store import Change


class DisruptionController(NamespacedController):
    """Reconciles PodDisruptionBudgets; not started where a real kube-controller-manager runs."""

    def __init__(self, context: ActorContext) -> None:
        super().__init__(context, POD_DISRUPTION_BUDGETS, user_agent="disruption-controller", loop="disruption")
        self._pods = context.caches.of(PODS)
        self._pods.subscribe(self._pod_changed)

    def _pod_changed(self, change: Change) -> None:
        for budget in budgets_of(change.obj, self._cache.store.list()):
            self._loop.add(objects.key(budget))

    async def _reconcile(self, key: Key) -> RequeueAfter:
        budget = self._cached(key)
        if budget is None:
            return None
        spec = objects.spec(budget)
        pods = [pod for pod in self._pods.store.list() if budgets_of(pod, [budget]) and not is_over(pod)]
        healthy = sum(1 for pod in pods if is_ready(pod) and not objects.is_deleting(pod))
        at_most = spec.get("maxUnavailable")
        desired = int(spec.get("minAvailable") or 0) if at_most is None else max(0, len(pods) - int(at_most))
        status = {
            "observedGeneration": objects.metadata(budget).get("generation") or 1,
            "disruptionsAllowed": max(0, healthy - desired),
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": len(pods),
        }
        difference = merge_diff(objects.status(budget), {**objects.status(budget), **status})
        if difference:
            await self._cache.patch(self._client, budget, MergePatch({"status": difference}))
        return None


def budgets_of(pod: Object, budgets: Iterable[Object]) -> list[Object]:
    """Return the budgets that select the Pod."""
    namespace, labels = objects.namespace(pod), objects.labels(pod)
    return [
        budget
        for budget in budgets
        if objects.namespace(budget) == namespace and selects(objects.spec(budget).get("selector"), labels)
    ]
