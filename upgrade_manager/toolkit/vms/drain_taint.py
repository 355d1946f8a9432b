"""The taint by which KubeVirt moves the VMs of a node to other nodes, and places no new VMs on the node.

The command pre_drain sets the taint, post_drain removes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import TAINT_KUBEVIRT_DRAIN
from upgrade_manager.facts.field_managers import last_manager
from upgrade_manager.facts.taints import has_drain_taint
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import NODES
from upgrade_manager.toolkit.run.plan_events import NORMAL

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.toolkit.run.context import ToolkitContext

_EFFECT = "NoSchedule"
#: The source of the event.
_SOURCE = "drain"
#: This program, in the API server's records of who has written a field.
_OWN = "harvester-upgrade-toolkit"
#: The client in words, if the API server has no record of it.
_UNKNOWN = "another client, such as Harvester's node-down controller,"
#: The taint with the value that Harvester sets; KubeVirt ignores the value.
_TAINT = {"key": TAINT_KUBEVIRT_DRAIN, "value": "draining", "effect": _EFFECT}


async def drain_taint_present(context: ToolkitContext) -> str:
    """Return an empty text if the node does not have the taint."""
    node = await context.client.get(NODES, context.node)
    return f"node {context.node} has the taint {TAINT_KUBEVIRT_DRAIN}" if has_drain_taint(node) else ""


async def set_drain_taint(context: ToolkitContext) -> None:
    """Add the taint unless the node has it. Raises Conflict if the node has changed: its taints are one list."""
    await _ensure(context)


async def set_drain_taint_again(context: ToolkitContext) -> None:
    """Add a taint that another client has removed, and report that client once in a run. Raises Conflict.

    Harvester's node-down controller (v1.7.0 to v1.8.2) removes it at each change of a Ready node. The API server
    records the last writer of the taints that are left, and none if no taint is left.
    """
    removed = await _ensure(context)
    if removed is not None:
        client = last_manager(removed, "spec", "taints", besides=_OWN) or _UNKNOWN
        message = (
            f"Node {context.node}: {client} has removed taint {TAINT_KUBEVIRT_DRAIN}, by which KubeVirt moves the "
            "node's VMs; it is set again at each check"
        )
        await context.events.record_once(_SOURCE, type_=NORMAL, reason="DrainTaintRemoved", message=message)


async def _ensure(context: ToolkitContext) -> Object | None:
    """Add the taint unless the node has it, and return the node without it. Raises Conflict."""
    node = await context.client.get(NODES, context.node)
    if _is_tainted(node):
        return None
    await _write(context, node, [*_taints(node), _TAINT])
    return node


async def remove_drain_taint(context: ToolkitContext) -> None:
    """Remove the taint with any effect, and keep all other taints. Raises Conflict if the node has changed."""
    node = await context.client.get(NODES, context.node)
    if has_drain_taint(node):
        await _write(context, node, _others(node))


async def _write(context: ToolkitContext, node: Object, taints: list[Object]) -> None:
    patch = MergePatch({"spec": {"taints": taints or None}}).at(objects.resource_version(node))
    await context.client.patch(NODES, context.node, patch, metadata_only=True)


def _taints(node: Object) -> list[Object]:
    return list(objects.spec(node).get("taints") or ())


def _others(node: Object) -> list[Object]:
    return [taint for taint in _taints(node) if taint.get("key") != TAINT_KUBEVIRT_DRAIN]


def _is_tainted(node: Object) -> bool:
    return any(taint.get("key") == TAINT_KUBEVIRT_DRAIN and taint.get("effect") == _EFFECT for taint in _taints(node))
