"""The ledger at the end of a plan: what is owed is settled before the success, and what cannot be settled is named.

reconciler.py calls it in the reconcile that ends the plan. settings/giving_back.py gives settings back before, and
restore-vm Jobs start VMs (node_upgrade/vm_restore.py); node_upgrade/drain_entries.py records the entries of drains.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.ledger import LedgerKind
from upgrade_manager.api.next_steps import step_entries
from upgrade_manager.api.remedy import Remedy, as_line
from upgrade_manager.blockers.known_wait import UnsettledVMWait
from upgrade_manager.facts.taints import has_drain_taint
from upgrade_manager.facts.vm_start import awaits_instance, runs
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES
from upgrade_manager.pipeline import host_changes, job_ledger, ledger
from upgrade_manager.pipeline.blocker_report import first_seen
from upgrade_manager.pipeline.ending import advice
from upgrade_manager.pipeline.node_upgrade import vm_restore
from upgrade_manager.pipeline.node_upgrade.drain_entries import vm_of
from upgrade_manager.pipeline.node_upgrade.effects import remove_taint
from upgrade_manager.pipeline.outcome import Waiting
from upgrade_manager.pipeline.plan_objects import skip_missing
from upgrade_manager.pipeline.selections import MANAGED_NODES
from upgrade_manager.pipeline.settings import giving_back, overrides
from upgrade_manager.pipeline.settings.earlier_records import is_unrecorded
from upgrade_manager.pipeline.write_log import describe

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from upgrade_manager.api.ledger import Entry
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.resources import Resource
    from upgrade_manager.pipeline.context import ReconcileContext

#: Seconds between two checks of VMs that start, which are not watched.
VM_RETRY = 5.0
#: VMs that the message of a wait names.
_SHOWN = 3


async def settle(ctx: ReconcileContext) -> Waiting | None:
    """Settle what can be settled before the success; return the wait for VMs that start.

    Settings are left where an earlier version, which gave them back later, has completed the node upgrade.
    """
    if overrides.pending_reverts(ctx, keep_strategy=False):
        await giving_back.give_back(ctx, keep_strategy=False)
        await ctx.persist()
    await job_ledger.copy(ctx)
    await _remove_taints(ctx)
    return await settle_vms(ctx)


async def name_settled(ctx: ReconcileContext) -> str:
    """Name what a success leaves: nodes that left, hosts that keep a change, VMs that are off, unrecorded settings.

    The entries are removed; the caller adds the sentences to the final condition, and writes the status. What Jobs have
    recorded stays for the clean-up: if the write fails, the next reconcile names it. What users give back is in the
    next steps, as lines to copy.
    """
    hosts, debts = await host_changes.left(ctx), await advice.still_changed(ctx)
    if debts:
        ctx.status["nextSteps"] = step_entries(debts)
    sentences = (*_left(ctx), *vms_off(ctx), *name_unrecorded(ctx), *_summary(debts))
    texts = [Remedy(text) for text in sentences]
    named = ledger.entries(ctx, LedgerKind.STOPPED_VM, LedgerKind.NODE_LEFT, LedgerKind.HOLD, LedgerKind.FILE)
    ledger.settle(ctx, [entry["id"] for entry in named])
    return as_line([*texts, *hosts])


def _summary(debts: Sequence[Remedy]) -> Iterator[str]:
    if len(debts) == 1:
        yield "1 change that a remedy advised was not given back at the end; see nextSteps"
    elif debts:
        yield f"{len(debts)} changes that remedies advised were not given back at the end; see nextSteps"


def name_unrecorded(ctx: ReconcileContext) -> list[str]:
    """Name the settings without a recorded original in events; remove their entries, and return the sentences."""
    found = [entry for entry in ledger.entries(ctx, LedgerKind.SETTING) if is_unrecorded(entry)]
    for entry in found:
        ctx.events.warning(ctx.raw, "SettingNotRestored", _unrecorded(entry), about=entry["id"])
    ledger.settle(ctx, [entry["id"] for entry in found])
    return [_unrecorded(entry) for entry in found]


async def _remove_taints(ctx: ReconcileContext) -> None:
    """Remove the taints that drains have left on nodes, all of which are upgraded."""
    entries = ledger.entries(ctx, LedgerKind.TAINT)
    if not entries:
        return
    nodes = await ctx.watch(MANAGED_NODES)
    for entry in entries:
        if has_drain_taint(nodes.get(entry.get("node", ""))):
            await remove_taint(ctx, entry["node"])
    await job_ledger.settle(ctx, [entry["id"] for entry in entries])


async def settle_vms(ctx: ReconcileContext) -> Waiting | None:
    """Settle the VMs that run or do not exist any more; return the wait for those that are about to run."""
    entries = ledger.entries(ctx, LedgerKind.STOPPED_VM)
    if not entries:
        return None
    instances = await _all(ctx, VIRTUAL_MACHINE_INSTANCES)
    stopped = [entry for entry in entries if not runs(instances.get(vm_of(entry)))]
    machines = await _all(ctx, VIRTUAL_MACHINES) if stopped else {}
    left = [entry for entry in stopped if vm_of(entry) in machines]
    kept = {entry["id"] for entry in left}
    await job_ledger.settle(ctx, [entry["id"] for entry in entries if entry["id"] not in kept])
    starting = [one for one in left if awaits_instance(machines[vm_of(one)], instances.get(vm_of(one)))]
    return _starting(ctx, starting) if starting else None


async def _all(ctx: ReconcileContext, resource: Resource) -> dict[str, Object]:
    """Return the objects of all namespaces by namespace/name; nothing without the kind."""
    found = await skip_missing(ctx.client, "", ctx.client.list(resource))
    return {objects.qualified_name(one): one for one in found.items} if found is not None else {}


def _starting(ctx: ReconcileContext, entries: list[Entry]) -> Waiting:
    names = list(map(vm_of, entries))
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    text = f"Waiting for VMs that were stopped for the upgrade to run: {', '.join(names[:_SHOWN])}{more}"
    return Waiting(message=text, after=VM_RETRY, waits=tuple(_wait(ctx, entry) for entry in entries))


def _wait(ctx: ReconcileContext, entry: Entry) -> UnsettledVMWait:
    namespace, _, name = vm_of(entry).partition("/")
    return UnsettledVMWait(
        namespace=namespace,
        name=name,
        node=entry.get("node", ""),
        since=first_seen(ctx, UnsettledVMWait, name),
        detail="it was stopped for the upgrade, and does not run again yet",
        # It may have no instance yet; KubeVirt copies the conditions of an instance.
        remedies=(Remedy("Show why", command=f"kubectl describe virtualmachines.kubevirt.io -n {namespace} {name}"),),
    )


def _left(ctx: ReconcileContext) -> Iterator[str]:
    for entry in ledger.entries(ctx, LedgerKind.NODE_LEFT):
        yield f"Node {entry.get('node', '')} left during the upgrade"


def vms_off(ctx: ReconcileContext) -> Iterator[str]:
    """Yield the sentence that names every VM that is off.

    VMs that should run are named in events, too, of a few each: with restoreVM, and those of nodes that left.
    """
    entries = ledger.entries(ctx, LedgerKind.STOPPED_VM)
    if not entries:
        return
    text = "VMs that were stopped for the upgrade are off; start them"
    # The event about a restore-vm Job that failed has named the VMs of its node.
    left = {one.get("node") for one in ledger.entries(ctx, LedgerKind.NODE_LEFT)}
    expected = [one for one in entries if ctx.plan.spec.restore_vm or one.get("node") in left]
    silent = [one for one in expected if ctx.status.node_reason(one.get("node", "")) != vm_restore.EVENT_REASON]
    ctx.events.vms(ctx.raw, "VMsOff", text, sorted(map(vm_of, silent)))
    yield f"{text}: {', '.join(sorted(map(vm_of, entries)))}"


def _unrecorded(entry: Entry) -> str:
    value, field = describe(entry.get("applied")), entry.get("field")
    return (
        f"{entry['object']}: {field} is {value}, as an upgrade sets it, and no record has its value before. Set it to "
        "the value that you want"
    )
