"""PodDisruptionBudgets that keep Pods on a node, and the remedies; facts/evictions.py has the API server's rules.

drains.py calls it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from upgrade_manager.api.blockers import Blocker, BlockerReason
from upgrade_manager.api.text import name_list
from upgrade_manager.facts.evictions import PodIndex, delete, health, keeps, staleness, ways_out
from upgrade_manager.kube import objects
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.resources import POD_DISRUPTION_BUDGETS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from upgrade_manager.api.remedy import Remedy
    from upgrade_manager.blockers.object_view import View
    from upgrade_manager.blockers.wait import DrainWait
    from upgrade_manager.kube.objects import Object


def budget_blockers(wait: DrainWait, pods: Sequence[Object], budgets: Sequence[Object]) -> Iterator[Blocker]:
    """Yield the budgets that allow no eviction of these Pods, and all budgets of a Pod that several budgets select."""
    index = PodIndex(pods)
    selected = [(budget, found) for budget in budgets if (found := index.selected(budget))]
    counts = Counter(id(pod) for _, found in selected for pod in found)
    for budget, found in selected:
        shared = [pod for pod in found if counts[id(pod)] > 1]
        kept = [pod for pod in found if keeps(budget, pod)]
        if shared:
            why = "and another PodDisruptionBudget select the same Pods, which Kubernetes never evicts"
            yield _blocker(
                wait, budget, shared, why=why, remedies=delete(budget, "Keep one of them, and delete the other")
            )
        elif kept:
            yield _kept(wait, budget, kept)


def _kept(wait: DrainWait, budget: Object, pods: Sequence[Object]) -> Blocker:
    why, is_stale = why_kept(budget, pods)
    return _blocker(wait, budget, pods, why=why, remedies=ways_out(budget, is_stale=is_stale))


def why_kept(budget: Object, kept: Sequence[Object]) -> tuple[str, bool]:
    """Return why the budget keeps these Pods or instances, after its name, and True if its status is out of date."""
    healthy, desired = health(budget)
    stale = staleness(budget, kept)
    if stale:
        return f"allows no disruption ({stale})", True
    needed = f"of {healthy} healthy Pods" if healthy >= desired else f"healthy Pods and has {healthy}"
    return f"needs {desired} {needed}", False


def budgets_beside(view: View, found: Sequence[Object]) -> Sequence[Object]:
    """Return the budgets in their namespaces only, because KubeVirt has a budget for each VM of the cluster."""
    namespaces = sorted({objects.namespace(one) for one in found})
    selections = (Selection(resource=POD_DISRUPTION_BUDGETS, namespace=namespace) for namespace in namespaces)
    return [budget for selection in selections for budget in view.objects(selection)]


def _blocker(
    wait: DrainWait, budget: Object, pods: Sequence[Object], *, why: str, remedies: tuple[Remedy, ...]
) -> Blocker:
    names = ("Pod " if len(pods) == 1 else "Pods ") + name_list(sorted(map(objects.qualified_name, pods)))
    named = objects.qualified_name(budget)
    return Blocker(
        reason=BlockerReason.DRAIN_FAILING,
        kind="PodDisruptionBudget",
        namespace=objects.namespace(budget),
        name=objects.name(budget),
        node=wait.node,
        message=f"{names} cannot be evicted from {wait.node}: PodDisruptionBudget {named} {why}",
        remedies=remedies,
        since=wait.since,
    )
