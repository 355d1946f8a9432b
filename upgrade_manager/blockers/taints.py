"""Remedies for taints that keep a Pod from its nodes; facts/taints.py has the scheduler's rules.

pods.py adds them to the remedy of a Pod that is not scheduled. A node whose drain has begun keeps its taints: with VMs
that come back, an upgrade would end them.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import FLEET_LOCAL, LABEL_HOSTNAME, MACHINE_PLAN_SELECTOR, TAINT_KUBEVIRT_DRAIN
from upgrade_manager.api.remedy import Change, Remedy
from upgrade_manager.api.text import name_list
from upgrade_manager.blockers.object_view import Unreadable
from upgrade_manager.facts.machine_plan import held_nodes
from upgrade_manager.facts.node_obstacles import uncordon
from upgrade_manager.facts.taints import Taint, is_candidate, node_terms, untolerated
from upgrade_manager.kube import objects
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.resources import MACHINES, NODES, SECRETS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from upgrade_manager.blockers.object_view import View
    from upgrade_manager.kube.objects import Object

#: Taints that a command does not remove: Kubernetes keeps them while their cause lasts.
_KUBERNETES = "node.kubernetes.io/"
_CORDON = f"{_KUBERNETES}unschedulable"
#: The taints of a node that is drained.
_OF_DRAINS = frozenset({_CORDON, TAINT_KUBEVIRT_DRAIN})
_MACHINE_PLANS = Selection(
    resource=SECRETS, namespace=FLEET_LOCAL, field_selector=MACHINE_PLAN_SELECTOR, metadata_only=True
)
#: The most nodes that a command lists before `--all` replaces them, and the most taints in a remedy.
_MAX_NODES = 5
_MAX_TAINTS = 2


def untaint_steps(view: View, pod: Object) -> list[Remedy]:
    """Return the steps that remove the taints of the Pod's nodes, the most frequent taint first. Raises NotSynced."""
    tainted: defaultdict[Taint, list[str]] = defaultdict(list)
    for node, taints in _by_node(view, pod):
        for taint in taints:
            tainted[taint].append(node)
    try:
        held = _held(view, {node for taint, nodes in tainted.items() if taint.key in _OF_DRAINS for node in nodes})
    except Unreadable:
        return []  # a drain that is not known must not be undone
    removable = {taint: sorted(set(nodes).difference(_kept(taint, held))) for taint, nodes in tainted.items()}
    ranked = sorted(((taint, nodes) for taint, nodes in removable.items() if nodes), key=_rank)
    everywhere = not (held or objects.mapping(pod, "spec", "nodeSelector") or objects.mapping(pod, "spec", "affinity"))
    steps = [_step(taint, nodes, everywhere=everywhere) for taint, nodes in ranked[:_MAX_TAINTS]]
    return [*([_stays(sorted(held))] if held else []), *steps]


def _rank(item: tuple[Taint, list[str]]) -> tuple[int, Taint]:
    taint, nodes = item
    return -len(nodes), taint


def _held(view: View, nodes: set[str]) -> frozenset[str]:
    """Return which of these nodes a drain with hooks for a manager keeps, of this plan or an earlier one."""
    if not nodes:
        return frozenset()
    machines = view.objects(Selection(resource=MACHINES, namespace=FLEET_LOCAL))
    return held_nodes(nodes, view.objects(_MACHINE_PLANS), machines)


def _kept(taint: Taint, held: frozenset[str]) -> frozenset[str]:
    """Return the nodes that keep this taint."""
    return held if taint.key in _OF_DRAINS else frozenset()


def _stays(held: Sequence[str]) -> Remedy:
    its, it = ("its", "it") if len(held) == 1 else ("their", "them")
    ends = f"{its} drain has begun, and the end of {its} upgrade uncordons {it}"
    return Remedy(f"Do not uncordon {name_list(held)}: {ends}")


def taint_words(view: View, pod: Object) -> str:
    """Return the taints that alone keep the Pod from all of its nodes; empty if there is another reason."""
    found = [taints for _, taints in _by_node(view, pod)]
    keys = sorted({taint.key for taints in found for taint in taints})
    return f"taint{'s' if len(keys) > 1 else ''} {', '.join(keys)}" if keys and all(found) else ""


def _by_node(view: View, pod: Object) -> list[tuple[str, list[Taint]]]:
    """Return the Pod's nodes, each with the taints that keep the Pod from it. Raises NotSynced."""
    try:
        return [(objects.name(node), [*untolerated(node, pod)]) for node in _candidates(view, pod)]
    except Unreadable:
        return []  # the scheduler's message is more useful than this error


def _candidates(view: View, pod: Object) -> Iterator[Object]:
    """Yield the nodes that the Pod's selector and required affinity allow."""
    only = _only_node(objects.mapping(pod, "spec", "nodeSelector"), node_terms(pod))
    nodes = view.objects(Selection(resource=NODES, field_selector=f"metadata.name={only}" if only else ""))
    yield from (node for node in nodes if is_candidate(node, pod))


def _only_node(selector: object, terms: Sequence[object]) -> str:
    """Return the only node of a Pod that is bound to a node, as a Job's Pod is, so that other nodes are not read."""
    hostnames = {objects.text(selector, LABEL_HOSTNAME)}
    hostnames.update(
        values[0]
        for term in (terms if len(terms) == 1 else ())
        for one in objects.items(term, "matchExpressions")
        if objects.text(one, "key") == LABEL_HOSTNAME
        and objects.text(one, "operator") == "In"
        and len(values := [value for value in objects.items(one, "values") if isinstance(value, str)]) == 1
    )
    return max(hostnames)


def _step(taint: Taint, nodes: Sequence[str], *, everywhere: bool) -> Remedy:
    names = " ".join(nodes)
    if taint.key == _CORDON:
        return uncordon(f"Uncordon {_named(nodes)}", nodes)
    if taint.key.startswith(_KUBERNETES):
        text = f"Remove the cause of taint {taint.key} of {_named(nodes)}"
        return Remedy(text, command=f"kubectl describe node {names}")
    where = "--all" if everywhere and len(nodes) > _MAX_NODES else names
    value = f"={taint.value}" if taint.value else ""
    field = f"spec.taints[{taint.key}:{taint.effect}]"
    return Remedy(
        f"Remove the taint of {_named(nodes)}",
        command=f"kubectl taint node {where} {taint.key}:{taint.effect}-",
        # Other nodes have never had it.
        undo=f"kubectl taint node {names} {taint.key}{value}:{taint.effect}",
        changes=tuple(Change(kind="Node", name=node, field=field, original=_raw(taint)) for node in nodes),
    )


def _raw(taint: Taint) -> dict[str, str]:
    return {key: value for key, value in taint._asdict().items() if value}


def _named(nodes: Sequence[str]) -> str:
    return f"node {nodes[0]}" if len(nodes) == 1 else f"{len(nodes)} nodes"
