"""Every node is managed by Harvester and has exactly one Machine, which names it.

facts/machine_plan.py has the repair of a Node that names a wrong Machine, facts/missing_nodes.py that of the label.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import ANNOTATION_MACHINE, FLEET_LOCAL, is_managed
from upgrade_manager.facts.machine_plan import correct_annotation
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
    problems = ((objects.name(node), ". It ".join(_problems(node, node_of, machines_of))) for node in nodes)
    messages = [f"Node {name} {all_}" for name, all_ in problems if all_]
    messages += [_without_node(machine) for machine, node in node_of.items() if not node]
    if len(nodes) != len(machines):
        messages.insert(0, _different_numbers(len(nodes), len(machines)))
    return [Finding(message=message) for message in messages]


def _different_numbers(nodes: int, machines: int) -> str:
    show = f"kubectl get nodes; kubectl get {RESOURCE.name} -n {FLEET_LOCAL}"
    return (
        f"Namespace {FLEET_LOCAL}: the numbers of nodes ({nodes}) and Machines ({machines}) differ. Let nodes finish "
        f"joining, and delete the Nodes or Machines of removed ones: {show}"
    )


def _without_node(machine: str) -> str:
    show = f"kubectl describe {RESOURCE.name} -n {FLEET_LOCAL} {machine}"
    return f"Machine {FLEET_LOCAL}/{machine} has no node. Wait until its node has joined, or repair it: {show}"


def _problems(node: Object, node_of: Mapping[str, str], machines_of: Mapping[str, Sequence[str]]) -> Iterator[str]:
    name = objects.name(node)
    if not is_managed(objects.mapping(node, "metadata", "labels")):
        yield str(unlabelled(name)).removeprefix("it ")
    machine = objects.text(node, "metadata", "annotations", ANNOTATION_MACHINE)
    correct = correct_annotation(name, machines_of.get(name, ()))
    if not machine:
        yield f"lacks the annotation {ANNOTATION_MACHINE}. Add it: {correct}"
    elif machine not in node_of:
        yield f"names Machine {FLEET_LOCAL}/{machine}, which does not exist. Correct its annotation: {correct}"
    elif not node_of[machine]:
        wait = "Wait until status.nodeRef of the Machine names the node"
        yield f"names Machine {FLEET_LOCAL}/{machine}, whose status.nodeRef is empty. {wait}"
    elif node_of[machine] != name:
        yield f"names Machine {FLEET_LOCAL}/{machine} of node {node_of[machine]}. Correct its annotation: {correct}"


CHECK = Check(name="pairing", field="spec", find=_find)
