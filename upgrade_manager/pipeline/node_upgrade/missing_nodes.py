"""Nodes that the cache of managed nodes does not show; phase.py and ../ending/held_nodes.py ask for them.

facts/missing_nodes.py has the reasons.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import is_managed
from upgrade_manager.api.ledger import LedgerKind, entry_id, new_entry
from upgrade_manager.api.phases import PhaseName
from upgrade_manager.facts import machine_plan
from upgrade_manager.facts.missing_nodes import UNCACHED, WITHOUT_NODE, unlabelled, without_node
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import NODES
from upgrade_manager.nodes.model import Decision, NodeView
from upgrade_manager.nodes.pending_hooks import held_nodes
from upgrade_manager.pipeline import ledger
from upgrade_manager.pipeline.selections import LOCAL_MACHINES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from upgrade_manager.api.node_states import NodeState
    from upgrade_manager.facts.missing_nodes import MissingNode
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.store import Store
    from upgrade_manager.nodes.model import Decided, Decisions
    from upgrade_manager.nodes.node_view import Observed
    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.pipeline.node_upgrade.state import State


async def add_missing(ctx: ReconcileContext, state: State, decisions: Decisions, unseen: Sequence[str]) -> Decisions:
    """Return the decisions with those about recorded nodes that the cache does not show, unless they have left."""
    missing: list[Decided] = []
    for name, why in (await find_all_missing(ctx, unseen)).items():
        if why or state.single:
            state.missing[name] = why or WITHOUT_NODE
            missing.append(held_by(name, ctx.status.node_state(name), state.missing[name]))
        else:
            report_left(ctx, name)
            state.left.append(name)
    return decisions.with_active((*decisions.active, *missing))


async def find_missing(ctx: ReconcileContext, node: str) -> MissingNode | None:
    """Return why the node cannot be observed; None if neither its Node nor its Machine exists."""
    return (await find_all_missing(ctx, [node]))[node]


async def find_all_missing(ctx: ReconcileContext, nodes: Sequence[str]) -> dict[str, MissingNode | None]:
    """Return why each node cannot be observed; None if neither its Node nor its Machine exists.

    Nodes are listed once for all, and again after a while: a watch of the nodes that take no part would cost more.
    """
    known = json.loads(await ctx.informers.unseen_nodes.get(",".join(nodes), partial(_listed, ctx, nodes)))
    return {node: await _find_missing(ctx, node, managed=known.get(node)) for node in nodes}


async def find_hooked(ctx: ReconcileContext, observed: Observed) -> dict[str, MissingNode]:
    """Return the nodes with a pending hook that cannot be observed, so that the manager does not acknowledge it."""
    hooked = held_nodes(observed.secrets, observed.machines)
    names = [node for node, _ in hooked if observed.nodes.get(node) is None]
    return await find_missing_of(ctx, names) if names else {}


async def find_missing_of(ctx: ReconcileContext, nodes: Iterable[str]) -> dict[str, MissingNode]:
    """Return why each of these nodes of Machines cannot be observed."""
    found = await find_all_missing(ctx, sorted({*nodes}))
    return {name: missing for name, missing in found.items() if missing}


async def _listed(ctx: ReconcileContext, nodes: Sequence[str]) -> str:
    """Return by name, as JSON: True for each of the nodes that exists with the managed label, False without it."""
    selector = f"metadata.name={nodes[0]}" if len(nodes) == 1 else ""
    found = (await ctx.client.list(NODES, field_selector=selector, metadata_only=True)).items
    wanted = frozenset(nodes)
    return json.dumps({name: is_managed(objects.labels(one)) for one in found if (name := objects.name(one)) in wanted})


async def _find_missing(ctx: ReconcileContext, node: str, *, managed: bool | None) -> MissingNode | None:
    """Return why the node cannot be observed; `managed` is None if its Node does not exist."""
    if managed:
        return UNCACHED
    if managed is not None:
        return unlabelled(node)
    machine = _machine(await ctx.watch(LOCAL_MACHINES), node)
    return None if machine is None else without_node(machine)


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
