"""Taints that keep a Pod from a node, by the rules of Kubernetes' scheduler; blockers/taints.py has the remedies.

The taint by which KubeVirt evacuates a node is read by its Job (toolkit/vms/drain_taint.py), by the finder
(blockers/migrations.py) and at the end of a plan (pipeline/ending/settlement.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from upgrade_manager.api.keys import TAINT_KUBEVIRT_DRAIN
from upgrade_manager.facts.label_selectors import matches
from upgrade_manager.facts.node_affinity import NodeSet
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Iterator

    from upgrade_manager.kube.objects import Object

_EFFECTS = frozenset({"NoSchedule", "NoExecute"})


class Taint(NamedTuple):
    """A taint; Kubernetes allows one value for each key and effect."""

    key: str
    effect: str
    value: str = ""


def has_drain_taint(node: Object | None) -> bool:
    """Return True for a Node with the taint of a drain, of any effect."""
    return any(objects.text(taint, "key") == TAINT_KUBEVIRT_DRAIN for taint in objects.items(node, "spec", "taints"))


def node_terms(pod: Object) -> list[object]:
    """Return the terms of the Pod's required node affinity, one of which a node must match; empty without affinity."""
    affinity = objects.mapping(pod, "spec", "affinity", "nodeAffinity")
    return objects.items(affinity, "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")


def is_candidate(node: Object, pod: Object) -> bool:
    """Return True for a node that the Pod's selector and required affinity allow."""
    terms, selector = node_terms(pod), {"matchLabels": objects.mapping(pod, "spec", "nodeSelector")}
    if not matches(selector, objects.labels(node)):
        return False
    return not terms or bool(NodeSet([node]).matching({"nodeSelectorTerms": terms}))


def untolerated(node: Object, pod: Object) -> Iterator[Taint]:
    """Yield the taints of the node that keep the Pod from it."""
    tolerations = objects.items(pod, "spec", "tolerations")
    for taint in objects.items(node, "spec", "taints"):
        if objects.text(taint, "effect") in _EFFECTS and not any(_tolerates(one, taint) for one in tolerations):
            yield Taint(*(objects.text(taint, key) for key in ("key", "effect", "value")))


def _tolerates(toleration: object, taint: object) -> bool:
    key, effect = objects.text(toleration, "key"), objects.text(toleration, "effect")
    if effect not in {"", objects.text(taint, "effect")} or key not in {"", objects.text(taint, "key")}:
        return False
    if objects.text(toleration, "operator") == "Exists":
        return True
    return bool(key) and objects.text(toleration, "value") == objects.text(taint, "value")
