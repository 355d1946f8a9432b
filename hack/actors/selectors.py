"""Taints, tolerations, node selectors and node affinity."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.apiserver.selectors import meets
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Iterable

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
