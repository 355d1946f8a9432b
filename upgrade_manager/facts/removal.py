"""Objects that are being removed: the reason why one still exists, and what to do.

machine_plan.py and missing_nodes.py name Machines with it, pod_end.py Pods; pipeline/node_upgrade and pipeline/ending
name Jobs and the objects of an upgrade repository.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.remedy import Remedy
from upgrade_manager.api.text import name_list
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Sequence

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.resources import Resource

#: Shows the log of the garbage collector and of the Job controller.
CONTROLLER_LOGS = "kubectl -n kube-system logs -l component=kube-controller-manager --tail=20 --prefix"
#: The remedy for a Job without a Pod, and for one that is not marked as complete or failed.
CHECK_JOB_CONTROLLER = Remedy("Check the Job controller", command=CONTROLLER_LOGS)
#: The finalizers that the garbage collector removes once the dependents of the object are deleted, or have no owner.
_COLLECTED = frozenset({"foregroundDeletion", "orphan"})


def deletion(obj: Object) -> str:
    """Return the clause about an object that is being deleted, with what holds it; empty for another object."""
    if not objects.is_deleting(obj):
        return ""
    held = objects.finalizers(obj)
    if not held:
        return "it is being deleted"
    holds = "finalizer {} holds" if len(held) == 1 else "finalizers {} hold"
    return f"it is being deleted, and its {holds.format(name_list(held))} it"


def removal(obj: Object) -> str:
    """Return the clause about an object that is to be removed, and still exists."""
    return deletion(obj) or "the garbage collector has not removed it, although its owners are to be removed"


def ways_out(resource: Resource, obj: Object) -> tuple[Remedy, ...]:
    """Return the remedies for an object that is not removed: an object that is being deleted needs no other deletion.

    A finalizer stands for work that has not ended, so that no remedy removes it.
    """
    named = f"-n {objects.namespace(obj)} {objects.name(obj)}" if objects.namespace(obj) else objects.name(obj)
    if not objects.is_deleting(obj):
        return (Remedy("Delete it", command=f"kubectl delete {resource.name} {named}"),)
    show = Remedy("Show it", command=f"kubectl get {resource.name} {named} -o yaml")
    others = [one for one in objects.finalizers(obj) if one not in _COLLECTED]
    if others:
        return (repair_controller(others), show)
    return (Remedy("Check the garbage collector", command=CONTROLLER_LOGS), show)


def repair_controller(finalizers: Sequence[str]) -> Remedy:
    """Return the remedy for finalizers that stay."""
    return Remedy(f"Find out why the controller of {name_list(finalizers)} does not end its work, and repair it")
