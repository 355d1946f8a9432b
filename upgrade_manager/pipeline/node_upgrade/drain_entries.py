"""The ledger's entries of a drain: the taint of the node, and the VMs that may be stopped for it.

phase.py calls it before a node's Job starts, and when a node is done; ending/settlement.py settles what is left.
Harvester's toolkit does not record the VMs that it stops. Therefore each VM of the node is a candidate, which is
settled once it runs on another node. Our own toolkit records the VMs itself (toolkit/run/ledger.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import TAINT_KUBEVIRT_DRAIN
from upgrade_manager.api.ledger import LedgerKind, entry_id, new_entry
from upgrade_manager.facts.vm_obstacles import NODE_LABEL
from upgrade_manager.kube import objects
from upgrade_manager.kube.pager import ListOptions, Selection
from upgrade_manager.kube.resources import VIRTUAL_MACHINE_INSTANCES
from upgrade_manager.pipeline import job_ledger, ledger
from upgrade_manager.pipeline.plan_objects import skip_missing
from upgrade_manager.resources.job_ledger import stopped_vm

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from upgrade_manager.api.ledger import Entry
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.pager import ObjectList
    from upgrade_manager.nodes.model import NodeView
    from upgrade_manager.pipeline.context import ReconcileContext


#: The VMs that are listed one by one, in place of all VMs of a large cluster.
MAX_ASKED = 20


async def record(ctx: ReconcileContext, begun: Collection[NodeView]) -> None:
    """Record what the first Jobs of these nodes may change; the caller writes the status before they start."""
    ledger.put(ctx, [_taint(ctx, view.name) for view in begun if not ctx.status["singleNode"]])
    nodes = {view.name for view in begun if not view.is_witness}
    is_recorded = job_ledger.is_used(ctx)
    if not nodes or (is_recorded and not ledger.entries(ctx, LedgerKind.STOPPED_VM)):
        return
    instances = await _instances_of(ctx, nodes)
    await _settle_running(ctx, instances, beside=nodes)
    if is_recorded:
        return
    since = ledger.now(ctx)
    ledger.put(ctx, [stopped_vm(one, node=node, since=since) for one in instances if (node := _node(one)) in nodes])


async def expect(ctx: ReconcileContext, nodes: Collection[str]) -> list[str]:
    """Record the VMs of nodes whose Jobs continue after the plan, unless recorded; return their names."""
    since = ledger.now(ctx)
    instances = await _instances(ctx) if nodes else []
    found = [stopped_vm(one, node=node, since=since) for one in instances if (node := _node(one)) in nodes]
    ledger.put(ctx, [*found, *ledger.entries(ctx, LedgerKind.STOPPED_VM)])
    return sorted(map(vm_of, found))


async def finish(ctx: ReconcileContext, view: NodeView) -> None:
    """Copy what the Jobs of a node that is done have recorded, and settle its taint, unless the node still has it."""
    await job_ledger.copy(ctx)
    if not view.tainted:
        await job_ledger.settle(ctx, [entry_id(LedgerKind.TAINT, view.name)])


async def _settle_running(ctx: ReconcileContext, instances: Iterable[Object], *, beside: Iterable[str]) -> None:
    """Settle the VMs that have an instance on a node, except on those nodes."""
    excluded = {"", *beside}
    running = {objects.qualified_name(one) for one in instances if _node(one) not in excluded}
    ids = [one["id"] for one in ledger.entries(ctx, LedgerKind.STOPPED_VM) if vm_of(one) in running]
    await job_ledger.settle(ctx, ids)


def vm_of(entry: Entry) -> str:
    """Return namespace/name of the entry's VM."""
    return str(entry["object"].partition(" ")[2])


def _taint(ctx: ReconcileContext, node: str) -> Entry:
    fields = {"field": "spec.taints", "applied": TAINT_KUBEVIRT_DRAIN, "since": ledger.now(ctx)}
    return new_entry(LedgerKind.TAINT, node, object_=f"Node {node}", node=node, **fields)


async def _instances_of(ctx: ReconcileContext, nodes: Collection[str]) -> list[Object]:
    """Return at least the instances on these nodes, and those of the VMs that may have been stopped.

    In a cluster of more instances than a page has, only these are listed.
    """
    if not ctx.informers.has_many_vms:
        selection = Selection(resource=VIRTUAL_MACHINE_INSTANCES, metadata_only=True)
        page = await skip_missing(ctx.client, "", ctx.client.list_page(selection, ListOptions()))
        if page is None or not page.continue_token:
            return _running(page)
        ctx.informers.has_many_vms = True
    stopped = ledger.entries(ctx, LedgerKind.STOPPED_VM)
    if len(stopped) > MAX_ASKED:
        return await _instances(ctx)
    pages = [await _list(ctx, label_selector=f"{NODE_LABEL} in ({','.join(sorted(nodes))})")]
    for namespace, _, name in (vm_of(one).partition("/") for one in stopped):
        pages.append(await _list(ctx, namespace=namespace, field_selector=f"metadata.name={name}"))
    found = {objects.qualified_name(one): one for page in pages for one in _running(page)}
    return list(found.values())


async def _instances(ctx: ReconcileContext) -> list[Object]:
    return _running(await _list(ctx))


async def _list(ctx: ReconcileContext, **selectors: str) -> ObjectList | None:
    listed = ctx.client.list(VIRTUAL_MACHINE_INSTANCES, metadata_only=True, **selectors)
    return await skip_missing(ctx.client, "", listed)


def _running(page: ObjectList | None) -> list[Object]:
    return [one for one in page.items if not objects.is_deleting(one)] if page is not None else []


def _node(instance: Object) -> str:
    return objects.labels(instance).get(NODE_LABEL, "")
