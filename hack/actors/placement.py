"""Nodes for Pods, by taints, node selectors and affinity, and for virtual machines by the rules of Harvester."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.apiserver.selectors import meets
from upgrade_manager.api.keys import WITNESS_LABEL
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from upgrade_manager.kube.objects import Object


UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
NO_SCHEDULE = "NoSchedule"
NO_EXECUTE = "NoExecute"


def tolerates(pod: Object, taint: Object) -> bool:
    """Report whether one of the Pod's tolerations covers the taint."""
    return any(_covers(one, taint) for one in objects.spec(pod).get("tolerations") or ())


def _covers(toleration: Object, taint: Object) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    exists = (toleration.get("operator") or "Equal") == "Exists"
    if not toleration.get("key"):
        return exists
    if toleration["key"] != taint.get("key"):
        return False
    return exists or (toleration.get("value") or "") == (taint.get("value") or "")


def refusal(pod: Object, node: Object) -> str:
    """Return the scheduler's reason against the node, or an empty string."""
    cordon = {"key": UNSCHEDULABLE, "effect": NO_SCHEDULE}
    if objects.spec(node).get("unschedulable") and not tolerates(pod, cordon):
        return "node(s) were unschedulable"
    taints = objects.spec(node).get("taints") or ()
    if any(taint.get("effect") in {NO_SCHEDULE, NO_EXECUTE} and not tolerates(pod, taint) for taint in taints):
        return "node(s) had untolerated taint(s)"
    return ""


def is_rejected(pod: Object, node: Object) -> bool:
    """Report whether a kubelet rejects the Pod: of the taints, it checks only those with the effect NoExecute."""
    taints = objects.spec(node).get("taints") or ()
    return any(taint.get("effect") == NO_EXECUTE and not tolerates(pod, taint) for taint in taints)


def fits_node(pod: Object, node: Object) -> bool:
    """Report whether node selector and required node affinity match the node."""
    labels, spec = objects.labels(node), objects.spec(pod)
    wanted = spec.get("nodeSelector") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    return any(_term_fits(term, node) for term in required.get("nodeSelectorTerms") or ())


def _term_fits(term: Object, node: Object) -> bool:
    expressions: Iterable[Object] = term.get("matchExpressions") or ()
    fields: Iterable[Object] = term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    by_label = all(meets(one, objects.labels(node)) for one in expressions)
    return by_label and all(meets(one, {"metadata.name": objects.name(node)}) for one in fields)


FINAL = frozenset({"Succeeded", "Failed"})


def is_final(instance: Object) -> bool:
    """Report whether the instance has ended for good."""
    return objects.status(instance).get("phase") in FINAL


def place(instance: Object, nodes: Iterable[Object], load: Callable[[str], int], *, other_than: str = "") -> str:
    """Return the least loaded node that accepts the instance, or an empty string."""
    open_ = [
        node for node in nodes if objects.name(node) != other_than and _accepts(node) and fits_node(instance, node)
    ]
    ranked = sorted((load(objects.name(node)), objects.name(node)) for node in open_)
    return ranked[0][1] if ranked else ""


def _accepts(node: Object) -> bool:
    taints = objects.spec(node).get("taints") or ()
    tainted = any(taint.get("effect") in {NO_SCHEDULE, NO_EXECUTE} for taint in taints)
    cordoned = bool(objects.spec(node).get("unschedulable"))
    ready = objects.is_condition_true(node, "Ready")
    return ready and not cordoned and not tainted and WITNESS_LABEL not in objects.labels(node)
