"""Nodes and their Machines: unknown names of nodes, and the repair of a Node that names a wrong Machine.

The webhook refuses plans by it (webhook/checks/pairing.py, pause_list.py). nodes/node_view.py names a node whose
Machine is ambiguous, and pipeline/node_upgrade/managed_nodes.py reports unknown names in the pause list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.facts.machine_plan import machine_nodes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from upgrade_manager.kube.objects import Object


def unknown_nodes(names: Iterable[str], *, nodes: Iterable[str], machines: Iterable[Object]) -> list[str]:
    """Return the names that are neither Nodes nor nodes of Machines, sorted.

    The label of a node with a Machine, or its Node, may be missing at this moment.
    """
    return sorted({*names}.difference(nodes, machine_nodes(machines)))
