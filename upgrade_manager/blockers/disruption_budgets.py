"""PodDisruptionBudgets that keep Pods on a node, by the rules of the API server's evictions."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from upgrade_manager.api.blockers import Blocker, BlockerReason
from upgrade_manager.api.keys import LONGHORN_SYSTEM
from upgrade_manager.api.text import name_list
from upgrade_manager.blockers.remedy import steps
from upgrade_manager.facts.label_selectors import matches
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from upgrade_manager.blockers.wait import Wait
    from upgrade_manager.kube.objects import Object

_INSTANCE = "VirtualMachineInstance"
_LIMITS = ("minAvailable", "maxUnavailable")


class _PodIndex:
    """Pods by namespace and label: a namespace with many VMs has as many budgets, each of one Pod."""

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


def budget_blockers(wait: Wait, pods: Sequence[Object], budgets: Sequence[Object]) -> Iterator[Blocker]:
    """Yield the budgets that allow no eviction of these Pods, and those of Pods that several select."""
    index = _PodIndex(pods)
    selected = [(budget, found) for budget in budgets if (found := index.selected(budget))]
    counts = Counter(id(pod) for _, found in selected for pod in found)
    for budget, found in selected:
        shared = [pod for pod in found if counts[id(pod)] > 1]
        kept = [pod for pod in found if _keeps(budget, pod)]
        if shared:
            why = "another PodDisruptionBudget selects the same Pods, which Kubernetes never evicts"
            yield _blocker(wait, budget, shared, why=why, remedy=f"Keep one of them: {_delete(budget)}")
        elif kept:
            yield _kept(wait, budget, kept)


def _keeps(budget: Object, pod: Object) -> bool:
    """Return True if the API server refuses the Pod's eviction."""
    if _is_unobserved(budget):
        return True
    allowed, observed = (_number(budget, key) for key in ("disruptionsAllowed", "observedGeneration"))
    if (allowed is None and observed is None) or (allowed or 0) > 0:
        return False
    is_unready = objects.text(objects.condition(pod, "Ready"), "status") == "False"
    healthy, desired = _health(budget)
    evicts_unready = objects.text(budget, "spec", "unhealthyPodEvictionPolicy") == "AlwaysAllow"
    return not (is_unready and (healthy >= desired > 0 or evicts_unready))


def _is_unobserved(budget: Object) -> bool:
    """Return True if the status is older than the spec: then the API server allows no eviction."""
    return (_number(budget, "observedGeneration") or 0) < (objects.number(budget, "metadata", "generation") or 0)


def _health(budget: Object) -> tuple[int, int]:
    return _number(budget, "currentHealthy") or 0, _number(budget, "desiredHealthy") or 0


def _number(budget: Object, key: str) -> int | None:
    return objects.number(budget, "status", key)


def _kept(wait: Wait, budget: Object, pods: Sequence[Object]) -> Blocker:
    healthy, desired = _health(budget)
    stale = _stale(budget, pods)
    why = stale or f"it allows no disruption: {healthy} Pods are healthy, {desired} must be"
    return _blocker(wait, budget, pods, why=why, remedy=_remedy(budget, is_stale=bool(stale)))


def _stale(budget: Object, pods: Sequence[Object]) -> str:
    """Return why the budget does not describe a workload that runs; empty if it does."""
    allowed = objects.condition(budget, "DisruptionAllowed")
    if _is_unobserved(budget):
        return "its status is stale: the disruption controller has not processed its spec"
    if objects.text(allowed, "reason") == "SyncFailed":
        return f"its status is stale: {objects.excerpt(allowed, 'message') or 'SyncFailed'}"
    if _number(budget, "expectedPods") == 0:
        return "its status is stale: it expects 0 Pods"
    is_owned = any(objects.items(pod, "metadata", "ownerReferences") for pod in pods)
    return "" if is_owned else "it is stale: its Pods have no owner that would replace them"


def _remedy(budget: Object, *, is_stale: bool) -> str:
    namespace = objects.namespace(budget)
    owners = objects.items(budget, "metadata", "ownerReferences")
    machine = next((objects.text(one, "name") for one in owners if objects.text(one, "kind") == _INSTANCE), "")
    if machine:
        return f"virtctl migrate {machine} -n {namespace}"
    if is_stale:
        return _delete(budget)
    if namespace == LONGHORN_SYSTEM:
        volumes = f"kubectl get volumes.longhorn.io -n {namespace}"
        return steps(f"Wait until no volume is degraded: {volumes}", f"Delete it then: {_delete(budget)}")
    healthy, desired = _health(budget)
    if healthy < desired:
        return steps("Repair its other Pods", f"Or delete it, if none of them has to run: {_delete(budget)}")
    named = f"-n {namespace} {objects.name(budget)}"
    allow = f"""kubectl patch pdb {named} --type=merge -p '{{"spec":{{"minAvailable":null,"maxUnavailable":1}}}}'"""
    spec = objects.mapping(budget, "spec")
    limits = (f" ({key} is {spec[key]} now)" for key in _LIMITS if spec.get(key) is not None)
    until = f"Or allow one Pod to be down until the upgrade has ended{next(limits, '')}"
    return steps("Add a replica to its workload", f"{until}: {allow}")


def _delete(budget: Object) -> str:
    return f"kubectl delete pdb -n {objects.namespace(budget)} {objects.name(budget)}"


def _blocker(wait: Wait, budget: Object, pods: Sequence[Object], *, why: str, remedy: str) -> Blocker:
    names = ("Pod " if len(pods) == 1 else "Pods ") + name_list(sorted(map(objects.name, pods)))
    named = objects.qualified_name(budget)
    return Blocker(
        reason=BlockerReason.DRAIN_FAILING,
        kind="PodDisruptionBudget",
        namespace=objects.namespace(budget),
        name=objects.name(budget),
        node=wait.node,
        message=f"PodDisruptionBudget {named}: it keeps {names} on node {wait.node} ({why})",
        remedy=remedy,
        since=wait.since,
    )
