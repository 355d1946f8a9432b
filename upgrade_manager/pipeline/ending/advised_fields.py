"""The kinds of changes that remedies advise, each with how the end of a plan compares it; advice.py calls it.

A remedy with an undo has changes, and each change has a row here (tests/pipeline/ending/test_advised_fields.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import (
    LONGHORN_VOLUMES,
    MANAGED_CHARTS,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PROVISIONING_CLUSTERS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    VIRTUAL_MACHINES,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.resources import Resource

#: The states in which the API server reports a VM that a user has stopped.
_OFF = frozenset({"Stopped", "Stopping"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Advised:
    """An entry of `status.advised`, with its original parsed."""

    name: str
    #: The field without its entry.
    path: str
    original: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The comparison of one field with its original."""

    #: The kinds that have the object.
    resources: tuple[Resource, ...]
    #: True for an object with which the change is given back.
    is_as_it_was: Callable[[Object, Advised], bool]
    #: True if the object has the entry's name; else all objects of the kinds are read.
    by_name: bool = True
    #: True if the object is deleted by the command. Other objects leave with what they stand for.
    is_deleted: bool = False
    #: The state of a change that is not given back; empty for a field that differs.
    state: str = ""


def _value(obj: Object, advised: Advised) -> Any:
    return objects.value(obj, *advised.path.split("."))


def _equals(obj: Object, advised: Advised) -> bool:
    return bool(_value(obj, advised) == advised.original)


def _lists(obj: Object, advised: Advised) -> bool:
    found = _value(obj, advised)
    return isinstance(found, list) and advised.original in found


def _maps(obj: Object, advised: Advised) -> bool:
    found, original = _value(obj, advised), advised.original
    labels = found if isinstance(found, dict) else {}
    return isinstance(original, dict) and all(labels.get(key) == value for key, value in original.items())


def _has_hooks(obj: Object, advised: Advised) -> bool:
    return isinstance(advised.original, list) and all(
        hook in objects.items(_value(obj, advised), role, member) for role, member, hook in advised.original
    )


def _is_on(obj: Object, _advised: Advised) -> bool:
    return objects.text(obj, "status", "printableStatus") not in _OFF


def _has_webhook(obj: Object, advised: Advised) -> bool:
    return any(objects.text(one, "name") == advised.name for one in objects.items(obj, "webhooks"))


def _row(resource: Resource, is_as_it_was: Callable[[Object, Advised], bool] = _equals, **more: Any) -> Comparison:
    return Comparison(resources=(resource,), is_as_it_was=is_as_it_was, **more)


#: By kind and field, without the entry in brackets.
COMPARISONS: dict[tuple[str, str], Comparison] = {
    ("Cluster", "spec.rkeConfig.upgradeStrategy"): _row(PROVISIONING_CLUSTERS, _has_hooks),
    ("ManagedChart", "spec.paused"): _row(MANAGED_CHARTS),
    ("Node", "metadata.labels"): _row(NODES, _maps),
    ("Node", "spec.taints"): _row(NODES, _lists),
    ("Node", "spec.unschedulable"): _row(NODES),
    ("PodDisruptionBudget", "spec.maxUnavailable"): _row(POD_DISRUPTION_BUDGETS),
    ("PodDisruptionBudget", "spec.minAvailable"): _row(POD_DISRUPTION_BUDGETS),
    ("PodDisruptionBudget", "spec.selector"): _row(POD_DISRUPTION_BUDGETS, is_deleted=True),
    ("VirtualMachine", "status.printableStatus"): _row(VIRTUAL_MACHINES, _is_on, state="it is off"),
    ("Volume", "spec.diskSelector"): _row(LONGHORN_VOLUMES),
    ("Volume", "spec.nodeSelector"): _row(LONGHORN_VOLUMES),
    ("Volume", "spec.numberOfReplicas"): _row(LONGHORN_VOLUMES),
    ("Webhook", "configuration"): Comparison(
        resources=(VALIDATING_WEBHOOK_CONFIGURATIONS, MUTATING_WEBHOOK_CONFIGURATIONS),
        is_as_it_was=_has_webhook,
        by_name=False,
        is_deleted=True,
        state="no configuration lists it",
    ),
}
