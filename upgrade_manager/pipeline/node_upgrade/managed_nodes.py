"""Checks of the nodes to upgrade, shared by the phases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import MANAGED_SELECTOR, manage_command
from upgrade_manager.api.node_states import late_pauses
from upgrade_manager.api.phases import PhaseName
from upgrade_manager.api.text import name_list
from upgrade_manager.facts.kubernetes import is_older
from upgrade_manager.facts.machine_plan import machine_nodes
from upgrade_manager.facts.pairing import unknown_nodes
from upgrade_manager.kube import objects
from upgrade_manager.nodes.next_node import kubelet_of
from upgrade_manager.pipeline.errors import BadCluster
from upgrade_manager.pipeline.node_upgrade import missing_nodes
from upgrade_manager.pipeline.selections import LOCAL_MACHINES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.store import Store
    from upgrade_manager.pipeline.context import ReconcileContext


def single_node(nodes: Sequence[Object]) -> str | None:
    """Return the name of the only managed node; None if there are several."""
    return objects.name(nodes[0]) if len(nodes) == 1 else None


def record_kubernetes(ctx: ReconcileContext, nodes: Store, names: Iterable[str]) -> None:
    """Record the nodes of the upgrade that may run the release's Kubernetes already, before Rancher begins.

    Rancher drains the others when it upgrades their Kubernetes: such a node that runs the release's without a drain has
    lost its hooks (nodes/next_node.py).
    """
    release = (ctx.status["releaseMetadata"] or {}).get("kubernetes") or ""
    older = {name for name, kubelet in nodes.derive(kubelet_of) if is_older(kubelet, release)}
    ctx.status["sameKubernetes"] = sorted(set(names) - older)


async def left_out(ctx: ReconcileContext, nodes: Iterable[str]) -> list[str]:
    """Return the nodes of Rancher's Machines that are not among these, which have the managed label."""
    return sorted(set(machine_nodes((await ctx.watch(LOCAL_MACHINES)).list())) - set(nodes))


async def check_managed(ctx: ReconcileContext, nodes: Iterable[str]) -> None:
    """Raise BadCluster while Rancher has Machines of other nodes, which lack the managed label of the upgrade."""
    others = await left_out(ctx, nodes)
    if others:
        more = f". Also {name_list(others[1:])}" if others[1:] else ""
        raise BadCluster(f"Node {others[0]} would be left out: {await missing_nodes.reason(ctx, others[0])}{more}")


async def check_plan_nodes(ctx: ReconcileContext, nodes: Iterable[Object]) -> None:
    """Raise BadCluster while a node lacks the managed label, by which Plans select their nodes.

    A plan that ends upgrades no node: its Plans undo what they can.
    """
    is_ending = ctx.status.ended or objects.is_deleting(ctx.raw)
    if ctx.status["singleNode"] is None and not is_ending:
        await check_managed(ctx, map(objects.name, nodes))


def unmanaged() -> BadCluster:
    """Return the error about the managed label that all nodes lack."""
    return BadCluster(f"All nodes lack the label {MANAGED_SELECTOR}. Add it: {manage_command()}")


def unknown_pause_nodes(ctx: ReconcileContext, nodes: Store, machines: Store) -> str:
    """Report names in pauseNodes that match no node, in a Warning event and in the returned message.

    A node whose upgrade has started is an event alone: the list may name it for the rest of the upgrade.
    """
    named = ctx.plan.spec.node_upgrade_option.pause_nodes
    for name, text in late_pauses(objects.status(ctx.raw), named).items():
        ctx.events.warning(ctx.raw, "PauseIgnored", text, about=name)
    managed = (name for name in named if nodes.get(name) is not None)
    unknown = unknown_nodes(named, nodes=managed, machines=machines.list())
    if not unknown:
        return ""
    text = f"pauseNodes lists unknown node{'s' if len(unknown) > 1 else ''} {name_list(unknown)}; ignored"
    ctx.events.warning(
        ctx.raw, "PauseNodesUnknown", text, about=",".join(unknown), first_phase=PhaseName.INITIALIZE.active
    )
    return text
