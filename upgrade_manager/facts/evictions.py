"""PodDisruptionBudgets that keep a Pod on its node, by the rules of the API server's evictions.

blockers/disruption_budgets.py names such budgets, with the remedies.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from upgrade_manager.facts.label_selectors import matches
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Sequence

    from upgrade_manager.kube.objects import Object


class PodIndex:
    """An index of Pods by namespace and label; a namespace with many VMs has a budget for each VM's Pod."""

    def __init__(self, pods: Sequence[Object]) -> None:
        self._pods: defaultdict[tuple[str, ...], list[Object]] = defaultdict(list)
        for pod in pods:
            namespace = objects.namespace(pod)
            self._pods[namespace,].append(pod)
            for label in objects.strings(pod, "metadata", "labels").items():
                self._pods[namespace, *label].append(pod)

    def selected(self, budget: Object) -> list[Object]:
        """Return the Pods that the budget selects."""
        selector = objects.value(budget, "spec", "selector")
        label = next(iter(objects.strings(selector, "matchLabels").items()), ())
        near = self._pods.get((objects.namespace(budget), *label), ())
        return [pod for pod in near if matches(selector, objects.mapping(pod, "metadata", "labels"))]


def keeps(budget: Object, pod: Object) -> bool:
    """Return True if the API server refuses the Pod's eviction because of this budget alone."""
    if is_unobserved(budget):
        return True
    allowed, observed = (_number(budget, key) for key in ("disruptionsAllowed", "observedGeneration"))
    if (allowed is None and observed is None) or (allowed or 0) > 0:
        return False
    is_unready = objects.text(objects.condition(pod, "Ready"), "status") == "False"
    healthy, desired = health(budget)
    evicts_unready = objects.text(budget, "spec", "unhealthyPodEvictionPolicy") == "AlwaysAllow"
    return not (is_unready and (healthy >= desired > 0 or evicts_unready))


def is_unobserved(budget: Object) -> bool:
    """Return True if the budget's status is older than its spec, so that the API server allows no eviction."""
    return (_number(budget, "observedGeneration") or 0) < (objects.number(budget, "metadata", "generation") or 0)


def health(budget: Object) -> tuple[int, int]:
    """Return the number of the budget's healthy Pods, and the number that it requires."""
    return _number(budget, "currentHealthy") or 0, _number(budget, "desiredHealthy") or 0


def staleness(budget: Object, pods: Sequence[Object]) -> str:
    """Return the reason why the budget does not describe a running workload; empty if the budget describes one."""
    allowed = objects.condition(budget, "DisruptionAllowed")
    if is_unobserved(budget):
        return "its status is stale: the disruption controller has not processed its spec"
    if objects.text(allowed, "reason") == "SyncFailed":
        return f"its status is stale: {objects.excerpt(allowed, 'message') or 'SyncFailed'}"
    if _number(budget, "expectedPods") == 0:
        return "its status is stale: it expects 0 Pods"
    is_owned = any(objects.items(pod, "metadata", "ownerReferences") for pod in pods)
    return "" if is_owned else "it is stale: its Pods have no owner that would replace them"


def _number(budget: Object, key: str) -> int | None:
    return objects.number(budget, "status", key)
