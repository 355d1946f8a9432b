"""Recorded nodes that the cache of managed nodes does not show; phase.py and ../ending/held_nodes.py ask for them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import HARVESTER_SYSTEM, MANAGED_SELECTOR, is_managed, manage_command
from upgrade_manager.api.ledger import LedgerKind, entry_id, new_entry
from upgrade_manager.api.phases import PhaseName
from upgrade_manager.facts import machine_plan
from upgrade_manager.facts.removal import deletion, ways_out
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import MACHINES, NODES
from upgrade_manager.nodes.model import Decision, NodeView
from upgrade_manager.pipeline import ledger
from upgrade_manager.pipeline.selections import LOCAL_MACHINES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from upgrade_manager.api.node_states import NodeState
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.store import Store
    from upgrade_manager.nodes.node_view import Decided
    from upgrade_manager.pipeline.context import ReconcileContext


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingNode:
    """A node that cannot be observed, and the reason."""

    problem: str
    ways_out: tuple[str, ...]
    #: True while the manager's cache alone lacks the node, which passes by itself.
    is_passing: bool = False

    def __str__(self) -> str:
        return self.problem if self.is_passing else f"{self.problem}. {self.ways_out[0]}"


_RESTART = f"Restart the manager: kubectl -n {HARVESTER_SYSTEM} rollout restart deploy/harvester-upgrade-manager"
#: The problem of a single node, which has no Machine in every cluster.
WITHOUT_NODE = MissingNode(problem="its Node does not exist", ways_out=("Start the node",))


async def find_missing(ctx: ReconcileContext, node: str) -> MissingNode | None:
    """Return why the node cannot be observed; None if neither its Node nor its Machine exists."""
    return (await find_all_missing(ctx, [node]))[node]


async def find_all_missing(ctx: ReconcileContext, nodes: Sequence[str]) -> dict[str, MissingNode | None]:
    """Return why each node cannot be observed; None if neither its Node nor its Machine exists.

    Nodes are listed once for all, and again after a while: a watch of the nodes that take no part would cost more.
    """
    known = json.loads(await ctx.informers.unseen_nodes.get(",".join(nodes), partial(_listed, ctx, nodes)))
    return {node: await _find_missing(ctx, node, managed=known.get(node)) for node in nodes}


async def _listed(ctx: ReconcileContext, nodes: Sequence[str]) -> str:
    """Return by name, as JSON: True for each of the nodes that exists with the managed label, False without it."""
    selector = f"metadata.name={nodes[0]}" if len(nodes) == 1 else ""
    found = (await ctx.client.list(NODES, field_selector=selector, metadata_only=True)).items
    wanted = frozenset(nodes)
    return json.dumps({name: is_managed(objects.labels(one)) for one in found if (name := objects.name(one)) in wanted})


async def _find_missing(ctx: ReconcileContext, node: str, *, managed: bool | None) -> MissingNode | None:
    """Return why the node cannot be observed; `managed` is None if its Node does not exist."""
    if managed:
        return MissingNode(problem="its Node is not in the cache yet", ways_out=(_RESTART,), is_passing=True)
    if managed is not None:
        way_out = f"Add it: {manage_command(node)}"
        return MissingNode(problem=f"its label {MANAGED_SELECTOR} is missing", ways_out=(way_out,))
    machine = _machine(await ctx.watch(LOCAL_MACHINES), node)
    return None if machine is None else _without_node(machine)


def _without_node(machine: Object) -> MissingNode:
    """Return the problem of a Machine without a Node, which is deleted once if the node is to leave."""
    named, is_deleted = f"Machine {objects.qualified_name(machine)}", deletion(machine)
    if is_deleted:
        problem = f"its Node does not exist, but {named} does: {is_deleted}"
        return MissingNode(problem=problem, ways_out=ways_out(MACHINES, machine))
    problem = f"its Node does not exist, but {named} does"
    return MissingNode(problem=problem, ways_out=("Start the node, or delete the Machine",))


def held_by(node: str, recorded: NodeState | None, missing: MissingNode) -> Decided:
    """Return the decision about a recorded node that cannot be observed: it holds the phase."""
    view = NodeView(name=node, state=recorded, os_image="", ready=False, pending_os="", jobs={})
    return view, Decision(state=recorded, progress=f"{node}: {missing}", message=str(missing), holds=True)


def report_left(ctx: ReconcileContext, node: str) -> None:
    """Record once that the node has left for good, in the ledger and in an event; its taint left with it."""
    entry = new_entry(LedgerKind.NODE_LEFT, node, object_=f"{NODES.kind} {node}", node=node, since=ledger.now(ctx))
    if any(one["id"] == entry["id"] for one in ledger.entries(ctx)):
        return
    ledger.put(ctx, [entry])
    ledger.settle(ctx, [entry_id(LedgerKind.TAINT, node)])
    text = f"node {node} left during the upgrade: neither its Node nor its Machine exists"
    ctx.events.warning(ctx.raw, "NodeLeft", text, about=node, first_phase=PhaseName.NODE_UPGRADE.active)


async def reason(ctx: ReconcileContext, node: str) -> str:
    """Return why the node cannot be observed, and what to do; empty if neither its Node nor its Machine exists."""
    return str(await find_missing(ctx, node) or "")


async def has_left(ctx: ReconcileContext, node: str) -> bool:
    """Return True if neither the Node nor its Machine exists."""
    return not await reason(ctx, node)


def _machine(machines: Store, node: str) -> Object | None:
    return next((one for one in machines.list() if machine_plan.node_of_machine(one) == node), None)
