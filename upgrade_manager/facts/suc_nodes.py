"""Nodes that the system-upgrade-controller has processed by its own record, and nodes that it cannot process.

pipeline/phases/plan_jobs.py refuses to create a Plan for such nodes, and blockers/upgrade_controller.py reports nodes
whose label changes after the creation of the Plan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import LABEL_HOSTNAME, suc_node_label
from upgrade_manager.api.remedy import Change, Remedy
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import NODES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from upgrade_manager.kube.objects import Object

#: The controller's Deployment, in cattle-system.
UPGRADE_CONTROLLER = "system-upgrade-controller"
#: The controller's label for the Plan of a Job or Pod.
LABEL_SUC_PLAN = "upgrade.cattle.io/plan"


def labelled_nodes(plan: str, nodes: Iterable[Object]) -> list[str]:
    """Return the names of the nodes on which the Plan of this name is complete, by the controller's label."""
    label = suc_node_label(plan)
    return [objects.name(node) for node in nodes if label in objects.labels(node)]


def hostname_problem(node: Object) -> str:
    """Return the difference between hostname label and node name, on which the controller hangs; empty if equal."""
    hostname = objects.labels(node).get(LABEL_HOSTNAME, "")
    if hostname == objects.name(node):
        return ""
    return f'label {LABEL_HOSTNAME} is "{hostname}", but the system-upgrade-controller requires the node\'s name'


def hostname_remedy(node: Object) -> Remedy:
    """Return the remedy that sets the label to the node's name; the former value is a defect, and is not given back."""
    name = objects.name(node)
    return Remedy("Correct the label", command=f"kubectl label --overwrite node {name} {LABEL_HOSTNAME}={name}")


def label_change(node: str, label: str, original: str | None) -> Change:
    """Return the change of a node's label, which is None on a node without it."""
    return Change(kind=NODES.kind, name=node, field=f"metadata.labels[{label}]", original={label: original})
