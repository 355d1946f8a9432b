"""Every node is Ready and not cordoned, except by an upgrade that ended early.

facts/node_obstacles.py has the remedies for a node that is not Ready, also for the gate (nodes/gate.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.remedy import Remedy
from upgrade_manager.facts.live_migration import uncordoned
from upgrade_manager.facts.node_obstacles import not_ready_ways_out
from upgrade_manager.kube import objects
from webhook.check import Check, Finding
from webhook.cordons import held_nodes
from webhook.listings import NODES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from upgrade_manager.kube.objects import Object
    from webhook.check import Subject


async def _find(subject: Subject) -> list[Finding]:
    found = await subject.cluster.list(NODES)
    nodes = uncordoned(found, await held_nodes(subject.cluster, found))
    if not nodes:
        join = Remedy("Wait until one has joined", command="kubectl get nodes")
        return [Finding(problem="The cluster has no nodes", remedies=(join,))]
    return [finding for node in nodes for finding in _findings(node)]


def _findings(node: Object) -> Iterator[Finding]:
    name, ready = objects.name(node), objects.condition(node, "Ready")
    if objects.text(ready, "status") != "True":
        reason = objects.excerpt(ready, "message") or "its kubelet has not reported"
        yield Finding(problem=f"Node {name} is not Ready: {reason}", remedies=not_ready_ways_out(name))
    if objects.is_true(node, "spec", "unschedulable"):
        uncordon = Remedy("Uncordon it", command=f"kubectl uncordon {name}")
        yield Finding(problem=f"Node {name} is cordoned", remedies=(uncordon,))


CHECK = Check(name="nodes", field="spec", find=_find)
