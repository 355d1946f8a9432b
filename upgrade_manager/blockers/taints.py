"""Taints that keep a Pod from its nodes, by the rules of Kubernetes' scheduler."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from upgrade_manager.api.keys import LABEL_HOSTNAME
from upgrade_manager.blockers.view import Unreadable
from upgrade_manager.facts.label_selectors import matches
from upgrade_manager.kube import objects
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.resources import NODES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from upgrade_manager.blockers.view import View
    from upgrade_manager.kube.objects import Object

_EFFECTS = frozenset({"NoSchedule", "NoExecute"})
#: Taints that a command does not remove: Kubernetes keeps them while their cause lasts.
_KUBERNETES = "node.kubernetes.io/"
_CORDON = f"{_KUBERNETES}unschedulable"
#: Nodes that a command names if it can name all, and taints that a remedy names.
_MAX_NODES = 5
_MAX_TAINTS = 2


class _Taint(NamedTuple):
    key: str
    effect: str


def untaint_steps(view: View, pod: Object) -> list[str]:
    """Return how to remove what keeps the Pod from its nodes, the most frequent taint first. Raises NotSynced."""
    tainted: defaultdict[_Taint, list[str]] = defaultdict(list)
    try:
        for node in _candidates(view, pod):
            for taint in _untolerated(node, pod):
                tainted[taint].append(objects.name(node))
    except Unreadable:
        return []  # the scheduler's message is worth more than that error
    ranked = sorted(tainted.items(), key=lambda item: (-len(item[1]), item[0]))
    everywhere = not objects.mapping(pod, "spec", "nodeSelector") and not objects.mapping(pod, "spec", "affinity")
    return [_step(taint, sorted(set(nodes)), everywhere=everywhere) for taint, nodes in ranked[:_MAX_TAINTS]]


def _candidates(view: View, pod: Object) -> Iterator[Object]:
    """Yield the nodes that the Pod's selector and required affinity allow."""
    selector = {"matchLabels": objects.mapping(pod, "spec", "nodeSelector")}
    affinity = objects.mapping(pod, "spec", "affinity", "nodeAffinity")
    terms = objects.items(affinity, "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
    only = _only_node(selector, terms)
    for node in view.objects(Selection(resource=NODES, field_selector=f"metadata.name={only}" if only else "")):
        labels = objects.labels(node)
        if matches(selector, labels) and (not terms or any(matches(term, labels) for term in terms)):
            yield node


def _only_node(selector: object, terms: Sequence[object]) -> str:
    """Return the node that a Pod is meant for, as those of Jobs on a node are; all nodes need not be read then."""
    hostnames = {objects.text(selector, "matchLabels", LABEL_HOSTNAME)}
    hostnames.update(
        values[0]
        for term in (terms if len(terms) == 1 else ())
        for one in objects.items(term, "matchExpressions")
        if objects.text(one, "key") == LABEL_HOSTNAME
        and objects.text(one, "operator") == "In"
        and len(values := [value for value in objects.items(one, "values") if isinstance(value, str)]) == 1
    )
    return max(hostnames)


def _untolerated(node: Object, pod: Object) -> Iterator[_Taint]:
    tolerations = objects.items(pod, "spec", "tolerations")
    for taint in objects.items(node, "spec", "taints"):
        if objects.text(taint, "effect") in _EFFECTS and not any(_tolerates(one, taint) for one in tolerations):
            yield _Taint(objects.text(taint, "key"), objects.text(taint, "effect"))


def _tolerates(toleration: object, taint: object) -> bool:
    key, effect = objects.text(toleration, "key"), objects.text(toleration, "effect")
    if effect not in {"", objects.text(taint, "effect")} or key not in {"", objects.text(taint, "key")}:
        return False
    if objects.text(toleration, "operator") == "Exists":
        return True
    return bool(key) and objects.text(toleration, "value") == objects.text(taint, "value")


def _step(taint: _Taint, nodes: Sequence[str], *, everywhere: bool) -> str:
    names = " ".join(nodes)
    if taint.key == _CORDON:
        return f"Uncordon {_named(nodes)}: kubectl uncordon {names}"
    if taint.key.startswith(_KUBERNETES):
        return f"Remove the cause of taint {taint.key} of {_named(nodes)}: kubectl describe node {names}"
    where = "--all" if everywhere and len(nodes) > _MAX_NODES else names
    return f"Remove the taint of {_named(nodes)}: kubectl taint node {where} {taint.key}:{taint.effect}-"


def _named(nodes: Sequence[str]) -> str:
    return f"node {nodes[0]}" if len(nodes) == 1 else f"{len(nodes)} nodes"
