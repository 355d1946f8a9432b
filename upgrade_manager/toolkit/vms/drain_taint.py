"""The taint by which KubeVirt moves the VMs of a node to other nodes, and places no new VMs on the node.

The command pre_drain sets the taint, post_drain removes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import TAINT_KUBEVIRT_DRAIN
from upgrade_manager.facts.taints import has_drain_taint
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import NODES

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.toolkit.run.context import ToolkitContext

_EFFECT = "NoSchedule"
#: The taint with the value that Harvester sets; KubeVirt ignores the value.
_TAINT = {"key": TAINT_KUBEVIRT_DRAIN, "value": "draining", "effect": _EFFECT}


async def drain_taint_present(context: ToolkitContext) -> str:
    """Return an empty text if the node does not have the taint."""
    node = await context.client.get(NODES, context.node)
    return f"node {context.node} has the taint {TAINT_KUBEVIRT_DRAIN}" if has_drain_taint(node) else ""


async def set_drain_taint(context: ToolkitContext) -> None:
    """Add the taint unless the node has it. Raises Conflict if the node has changed: its taints are one list."""
    node = await context.client.get(NODES, context.node)
    if not _is_tainted(node):
        await _write(context, node, [*_taints(node), _TAINT])


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
