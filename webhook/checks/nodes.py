"""Every node is Ready and not cordoned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook import fields
from webhook.check import Check, Finding
from webhook.listings import NODES

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object
    from webhook.check import Subject


async def _find(subject: Subject) -> list[Finding]:
    nodes = await subject.cluster.list(NODES)
    if not nodes:
        return [Finding(message="The cluster has no nodes")]
    return [Finding(message=message) for node in nodes for message in _problems(node)]


def _problems(node: Object) -> list[str]:
    name, found = fields.name(node), []
    ready = fields.condition(node, "Ready")
    if fields.text(ready, "status") != "True":
        reason = fields.text(ready, "message") or "its kubelet has not reported"
        found.append(f"Node {name} is not Ready: {reason}. Repair it, then create the plan")
    if fields.is_true(node, "spec", "unschedulable"):
        found.append(f"Node {name} is cordoned. Run kubectl uncordon {name}")
    return found


CHECK = Check(name="nodes", field="spec", find=_find)
