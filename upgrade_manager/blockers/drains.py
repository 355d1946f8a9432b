"""Finds the cause of an unfinished drain: Rancher's error, a PodDisruptionBudget, or Pods that do not terminate.

table.py lists the finder; rancher.py calls it to check that the cause of a silent drain is unknown.
facts/pod_end.py has the reasons of Pods, disruption_budgets.py those of budgets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.blockers import Blocker, BlockerReason
from upgrade_manager.api.remedy import Remedy
from upgrade_manager.api.timestamps import parse_time
from upgrade_manager.blockers.deadlines import START, drain
from upgrade_manager.blockers.disruption_budgets import budget_blockers, budgets_beside
from upgrade_manager.blockers.finder import Finder
from upgrade_manager.blockers.wait import DrainWait
from upgrade_manager.facts.final_phases import is_final
from upgrade_manager.facts.pod_end import unended
from upgrade_manager.kube import objects
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.resources import PODS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from upgrade_manager.blockers.object_view import View
    from upgrade_manager.kube.objects import Object

_MIRROR = "kubernetes.io/config.mirror"


def drain_blockers(view: View, wait: DrainWait) -> Iterator[Blocker]:
    """Yield Rancher's error, the budgets that keep Pods on the node, and Pods that have not ended in time."""
    if wait.detail:
        yield _error(wait)
    on_node = view.objects(Selection(resource=PODS, field_selector=f"spec.nodeName={wait.node}"))
    pods = [pod for pod in on_node if _is_drained(pod)]
    yield from (_lingering(wait, pod) for pod in pods if _is_late(view, pod))
    # Budgets do not count for Pods that have not started, have ended or are being deleted.
    running = [pod for pod in pods if not objects.is_deleting(pod) and _runs(pod)]
    if running:
        yield from budget_blockers(wait, running, budgets_beside(view, running))


def _error(wait: DrainWait) -> Blocker:
    words = objects.excerpt(wait.detail)
    return Blocker(
        reason=BlockerReason.DRAIN_FAILING,
        kind=wait.kind.object_kind,
        namespace=wait.namespace,
        name=wait.name,
        node=wait.node,
        message=f"Secret {wait.namespace}/{wait.name}: Rancher cannot drain node {wait.node} ({words})",
        remedies=(
            Remedy(
                "List the node's Pods, and delete or move the Pod that Rancher cannot evict",
                command=f"kubectl get pods -A --field-selector spec.nodeName={wait.node}",
            ),
        ),
        since=wait.since,
    )


def _is_drained(pod: Object) -> bool:
    """Return True for a Pod that a drain deletes, and waits for; one that has ended is deleted, too."""
    owners = objects.items(pod, "metadata", "ownerReferences")
    is_mirror = _MIRROR in objects.mapping(pod, "metadata", "annotations")
    return not (is_mirror or any(objects.text(owner, "kind") == "DaemonSet" for owner in owners))


def _runs(pod: Object) -> bool:
    return not is_final(pod) and objects.text(pod, "status", "phase") != "Pending"


def _is_late(view: View, pod: Object) -> bool:
    """Return True for a Pod whose grace period has ended long ago."""
    end = parse_time(objects.text(pod, "metadata", "deletionTimestamp"))
    return end is not None and view.now - end >= START


def _lingering(wait: DrainWait, pod: Object) -> Blocker:
    why, ways_out = unended(pod)
    return Blocker(
        reason=BlockerReason.DRAIN_FAILING,
        kind="Pod",
        namespace=objects.namespace(pod),
        name=objects.name(pod),
        node=wait.node,
        message=f"Pod {objects.qualified_name(pod)}: it is deleted, but {why}",
        remedies=ways_out,
        since=wait.since,
    )


FINDERS = (
    Finder(
        wait=DrainWait,
        reasons=(BlockerReason.DRAIN_FAILING,),
        overdue=drain,
        find=drain_blockers,
    ),
)
