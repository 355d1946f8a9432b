"""Every node is managed by Harvester and has exactly one Machine, which names it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import ANNOTATION_MACHINE, FLEET_LOCAL, MANAGED_SELECTOR, is_managed, manage_command
from upgrade_manager.kube.resources import MACHINES as RESOURCE
from webhook import fields
from webhook.check import Check, Finding
from webhook.listings import MACHINES, NODES, read_all

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from upgrade_manager.kube.objects import Object
    from webhook.check import Subject


async def _find(subject: Subject) -> list[Finding]:
    nodes, machines = await read_all(subject.cluster, NODES, MACHINES)
    node_of = {fields.name(machine): fields.text(machine, "status", "nodeRef", "name") for machine in machines}
    messages = [f"Node {fields.name(node)}: {all_}" for node in nodes if (all_ := ". ".join(_problems(node, node_of)))]
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


def _problems(node: Object, node_of: Mapping[str, str]) -> Iterator[str]:
    name = fields.name(node)
    if not is_managed(fields.mapping(node, "metadata", "labels")):
        yield f"the label {MANAGED_SELECTOR} is missing. Add it: {manage_command(name)}"
    machine = fields.text(node, "metadata", "annotations", ANNOTATION_MACHINE)
    named = node_of.get(machine)
    if machine and named == name:
        return
    owner = next((candidate for candidate, of in node_of.items() if of == name), "MACHINE")
    correct = f"kubectl annotate --overwrite node {name} {ANNOTATION_MACHINE}={owner}"
    if not machine:
        yield f"the annotation {ANNOTATION_MACHINE} is missing. Add it: {correct}"
    elif named is None:
        yield f"its Machine {FLEET_LOCAL}/{machine} does not exist. Correct the annotation: {correct}"
    else:
        other = f"is of node {named}" if named else "names no node"
        yield f"its Machine {FLEET_LOCAL}/{machine} {other}. Correct the annotation: {correct}"


CHECK = Check(name="pairing", field="spec", find=_find)
