"""Nodes and their Machines: unknown names of nodes, and the repair of a Node that names a wrong Machine.

The webhook refuses plans by it (webhook/checks/pairing.py, pause_list.py). nodes/node_view.py names a node whose
Machine is ambiguous, and pipeline/node_upgrade/managed_nodes.py reports unknown names in the pause list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import ANNOTATION_MACHINE, FLEET_LOCAL
from upgrade_manager.facts.machine_plan import machine_nodes
from upgrade_manager.kube.resources import MACHINES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from upgrade_manager.kube.objects import Object

_SHOW = f"kubectl get {MACHINES.name} -n {FLEET_LOCAL}"


def unknown_nodes(names: Iterable[str], *, managed: Iterable[str], machines: Iterable[Object]) -> list[str]:
    """Return the names that are neither managed nodes nor nodes of Machines, sorted.

    The label of a node with a Machine, or its Node, may be missing at this moment.
    """
    return sorted({*names}.difference(managed, machine_nodes(machines)))


def correct_annotation(node: str, machines: Sequence[str]) -> str:
    """Return the command by which the Node names its Machine; of several Machines, or without one, the user chooses."""
    machine = machines[0] if len(machines) == 1 else "MACHINE"
    annotate = f"kubectl annotate --overwrite node {node} {ANNOTATION_MACHINE}={machine}"
    return annotate if len(machines) == 1 else f"{_SHOW}; {annotate}"
