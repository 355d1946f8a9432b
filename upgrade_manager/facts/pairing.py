"""Names of nodes that are unknown to Kubernetes and to Rancher.

The webhook refuses a pause list with such names (webhook/checks/pause_list.py), and the manager reports and ignores
them (pipeline/node_upgrade/managed_nodes.py).
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
