"""Every node is managed by Harvester and has exactly one Machine, which names it.

facts/machine_plan.py has the repair of a Node that names a wrong Machine, facts/missing_nodes.py that of the label.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import ANNOTATION_MACHINE, FLEET_LOCAL, is_managed
from upgrade_manager.api.remedy import Remedy
from upgrade_manager.facts.machine_plan import SHOW_MACHINES, correct_annotation
from upgrade_manager.facts.missing_nodes import unlabelled
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import MACHINES as RESOURCE
from webhook.check import Check, Finding
from webhook.listings import MACHINES, NODES, read_all

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from upgrade_manager.kube.objects import Object
    from webhook.check import Subject


async def _find(subject: Subject) -> list[Finding]:
    nodes, machines = await read_all(subject.cluster, NODES, MACHINES)
    node_of = {objects.name(machine): objects.text(machine, "status", "nodeRef", "name") for machine in machines}
    machines_of: dict[str, list[str]] = {}
    for machine in machines:
        if not objects.is_deleting(machine):
            machines_of.setdefault(node_of[objects.name(machine)], []).append(objects.name(machine))
    found = [one for node in nodes for one in _of_node(node, node_of, machines_of)]
    found += [_without_node(machine) for machine, node in node_of.items() if not node]
    return found if len(nodes) == len(machines) else [_different_numbers(len(nodes), len(machines)), *found]


def _different_numbers(nodes: int, machines: int) -> Finding:
    return Finding(
        problem=f"Namespace {FLEET_LOCAL}: the numbers of nodes ({nodes}) and Machines ({machines}) differ",
        remedies=(
            Remedy("Let nodes finish joining, and delete the Nodes of removed ones", command="kubectl get nodes"),
            Remedy("Delete the Machines of removed nodes", command=SHOW_MACHINES),
        ),
    )


def _without_node(machine: str) -> Finding:
    show = f"kubectl describe {RESOURCE.name} -n {FLEET_LOCAL} {machine}"
    wait = Remedy("Wait until its node has joined, or repair it", command=show)
    return Finding(problem=f"Machine {FLEET_LOCAL}/{machine} has no node", remedies=(wait,))


def _of_node(node: Object, node_of: Mapping[str, str], machines_of: Mapping[str, Sequence[str]]) -> Iterator[Finding]:
    name = objects.name(node)
    if not is_managed(objects.mapping(node, "metadata", "labels")):
        missing = unlabelled(name)
        yield Finding(problem=f"Node {name} {missing.why.removeprefix('it ')}", remedies=missing.ways_out)
    machine = objects.text(node, "metadata", "annotations", ANNOTATION_MACHINE)
    named = f"Node {name} names Machine {FLEET_LOCAL}/{machine}"
    correct = correct_annotation(name, machines_of.get(name, ()))
    if not machine:
        yield Finding(problem=f"Node {name} lacks the annotation {ANNOTATION_MACHINE}", remedies=correct)
    elif machine not in node_of:
        yield Finding(problem=f"{named}, which does not exist", remedies=correct)
    elif not node_of[machine]:
        wait = "Wait until status.nodeRef of the Machine names the node"
        yield Finding(problem=f"{named}, whose status.nodeRef is empty. {wait}")
    elif node_of[machine] != name:
        yield Finding(problem=f"{named} of node {node_of[machine]}", remedies=correct)


CHECK = Check(name="pairing", field="spec", find=_find)
