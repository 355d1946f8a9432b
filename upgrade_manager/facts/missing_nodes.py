"""Nodes that the cache of managed nodes does not show: the reason, and what to do.

pipeline/node_upgrade/missing_nodes.py finds them, for the wait of the node itself and for the gate (nodes/gate.py); the
webhook (webhook/checks/pairing.py) names the label in the same words. node_obstacles.py has the reasons of other nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import HARVESTER_SYSTEM, MANAGED_SELECTOR, MANAGER, manage_command
from upgrade_manager.api.remedy import Remedy
from upgrade_manager.facts.deployments import restart
from upgrade_manager.facts.node_obstacles import NodeObstacle
from upgrade_manager.facts.removal import deletion, ways_out
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import MACHINES

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingNode(NodeObstacle):
    """A node that cannot be observed, and the reason."""

    #: True while the manager's cache alone lacks the node, which passes by itself.
    is_passing: bool = False

    def __str__(self) -> str:
        return self.why if self.is_passing else f"{self.why}. {self.ways_out[0]}"


_RESTART = Remedy("Restart the manager", command=restart(HARVESTER_SYSTEM, MANAGER))
#: A node that exists with the managed label.
UNCACHED = MissingNode(why="its Node is not in the cache yet", ways_out=(_RESTART,), is_passing=True)
#: A single node, which has no Machine in every cluster.
WITHOUT_NODE = MissingNode(why="its Node does not exist", ways_out=(Remedy("Start the node"),))


def unlabelled(node: str) -> MissingNode:
    """Return the reason of a node whose Node exists without the managed label."""
    add = Remedy("Add it", command=manage_command(node))
    return MissingNode(why=f"it lacks the label {MANAGED_SELECTOR}", ways_out=(add,))


def without_node(machine: Object) -> MissingNode:
    """Return the reason of a Machine without a Node, which is deleted once if the node is to leave."""
    why, is_deleted = f"its Node does not exist, but Machine {objects.qualified_name(machine)} does", deletion(machine)
    if is_deleted:
        return MissingNode(why=f"{why}: {is_deleted}", ways_out=ways_out(MACHINES, machine))
    return MissingNode(why=why, ways_out=(Remedy("Start the node, or delete the Machine"),))
