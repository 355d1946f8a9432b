"""PodDisruptionBudgets that keep a Pod on its node, by the rules of the API server's evictions, and leftover ones.

blockers/disruption_budgets.py names such budgets, with the remedies, and blockers/forbidden_stops.py those that keep
VMs from being stopped. The pre-drain Job waits for leftover budgets (toolkit/vms/evacuation.py), and
blockers/leftover_budgets.py names these.
"""

from __future__ import annotations

import json
import shlex
from collections import defaultdict
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import LONGHORN_SYSTEM
from upgrade_manager.api.remedy import Change, Remedy, saving
from upgrade_manager.facts.label_selectors import matches
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from upgrade_manager.kube.objects import Object

#: The step of the pre-drain Job that waits for leftover budgets (toolkit/commands/pre_drain.py).
BUDGET_GATE = "wait-for-disruption-budgets"
#: The state of a leftover budget.
LEFTOVER = "left over from ended VMs or migrations"
_LIMITS = ("minAvailable", "maxUnavailable")
_INSTANCE = "VirtualMachineInstance"
#: PodDisruptionBudgets of evacuations, which releases of KubeVirt before 1.5 created.
_OLD_MIGRATION = "kubevirt-migration-pdb-kubevirt-evacuation-"


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


def is_of_kubevirt(budget: Object) -> bool:
    """Return True for a budget of a VM or an evacuation, which KubeVirt creates and removes."""
    return _is_old(budget) or bool(_instance_uid(budget))


def leftovers(budgets: Iterable[Object], instances: Collection[str]) -> list[Object]:
    """Return KubeVirt's budgets of ended VMs and of evacuations; `instances` are the uids of the existing VMs.

    Rancher's drain waits for the Pods of such a budget, which the budget keeps for ever.
    """
    return [one for one in budgets if _is_old(one) or ((uid := _instance_uid(one)) and uid not in instances)]


def ways_out(budget: Object, *, is_stale: bool) -> tuple[Remedy, ...]:
    """Return the remedies for a budget that keeps its Pods; a budget of an evacuation has no VM that could move."""
    machine, namespace = _instance(budget, "name"), objects.namespace(budget)
    if _is_old(budget):
        return (delete_leftover(budget),)
    if machine:
        return (Remedy("Migrate the VM", command=f"virtctl migrate {machine} -n {namespace}"),)
    if is_stale:
        return delete(budget, "Delete it")
    if namespace == LONGHORN_SYSTEM:
        volumes = f"kubectl get volumes.longhorn.io -n {namespace}"
        return (Remedy("Wait until no volume is degraded", command=volumes), *delete(budget, "Delete it then"))
    return _repair(budget) or (
        Remedy("Add a replica to its workload"),
        _change_limits(budget, {"maxUnavailable": 1}),
    )


def ways_out_of_stop(budget: Object, *, is_stale: bool) -> tuple[Remedy, ...]:
    """Return the remedies for a budget that keeps a VM from being stopped.

    Of Pods of VMs Kubernetes cannot count the replicas that maxUnavailable and percentages refer to.
    """
    if is_stale:
        return delete(budget, "Delete it")
    healthy, _ = health(budget)
    return _repair(budget) or (
        Remedy("Start another VM that it selects"),
        _change_limits(budget, {"minAvailable": max(healthy - 1, 0)}),
    )


def _repair(budget: Object) -> tuple[Remedy, ...]:
    """Return the remedies for a budget with fewer healthy Pods than it needs; none for another one."""
    healthy, desired = health(budget)
    if healthy >= desired:
        return ()
    return (Remedy("Repair its other Pods"), *delete(budget, "Or delete it, if none of them has to run"))


def _change_limits(budget: Object, changed: Object) -> Remedy:
    limits = {key: objects.mapping(budget, "spec").get(key) for key in _LIMITS}
    known = next((f" ({key} is {limit} now)" for key, limit in limits.items() if limit is not None), "")
    return Remedy(
        f"Or allow one Pod to be down until the upgrade has ended{known}",
        command=_patch(budget, {**dict.fromkeys(_LIMITS), **changed}),
        undo=_patch(budget, limits),
        changes=tuple(_change(budget, key) for key in _LIMITS),
    )


def _change(budget: Object, key: str) -> Change:
    namespace, name = objects.namespace(budget), objects.name(budget)
    original = objects.value(budget, "spec", key)
    return Change(kind="PodDisruptionBudget", namespace=namespace, name=name, field=f"spec.{key}", original=original)


def _patch(budget: Object, spec: Object) -> str:
    patch = json.dumps({"spec": spec}, separators=(",", ":"))
    return f"kubectl patch pdb {_named(budget)} --type=merge -p {shlex.quote(patch)}"


def delete(budget: Object, text: str) -> tuple[Remedy, Remedy]:
    """Return the remedies that save a user's budget, and delete it."""
    file = f"pdb-{objects.namespace(budget)}-{objects.name(budget)}.yaml"
    return (
        Remedy("Save the budget", command=saving(f"kubectl get pdb {_named(budget)} -o yaml", file)),
        Remedy(
            text,
            command=f"kubectl delete pdb {_named(budget)}",
            undo=f"kubectl create -f {file}",
            changes=(_change(budget, "selector"),),
        ),
    )


def delete_leftover(budget: Object) -> Remedy:
    """Return the remedy that deletes a budget which KubeVirt has left, and which no one needs again."""
    return Remedy("Delete it", command=f"kubectl delete pdb {_named(budget)}")


def _named(budget: Object) -> str:
    return f"-n {objects.namespace(budget)} {objects.name(budget)}"


def _is_old(budget: Object) -> bool:
    return objects.name(budget).startswith(_OLD_MIGRATION)


def _instance_uid(budget: Object) -> str:
    return _instance(budget, "uid")


def _instance(budget: Object, field: str) -> str:
    """Return this field of the reference to the VM that owns the budget; empty if none does."""
    owners = objects.items(budget, "metadata", "ownerReferences")
    instances = (one for one in owners if objects.text(one, "kind") == _INSTANCE)
    return objects.text(next(instances, None), field)


def _number(budget: Object, key: str) -> int | None:
    return objects.number(budget, "status", key)
