"""Writes and reads the list of VMs that the upgrade stops, for the command restore-vm.

vm_shutdown.py records VMs before it stops them, the command restore_vm reads the list, and the manager releases
the list in pipeline/node_upgrade/vm_restore.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import HARVESTER_SYSTEM
from upgrade_manager.api.names import restore_vm_config_map
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import AlreadyExists, Conflict
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import CONFIG_MAPS
from upgrade_manager.resources.job_ledger import stopped_vm
from upgrade_manager.resources.owner import described_owner, plan_uid
from upgrade_manager.resources.restore_list import is_list_of, listed_vms, ownership, restore_list
from upgrade_manager.toolkit.run import ledger
from upgrade_manager.toolkit.run.errors import StepFailed
from upgrade_manager.toolkit.run.own_plan import own_plan
from upgrade_manager.toolkit.run.plan_events import NORMAL, WARNING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from upgrade_manager.api.ledger import Entry
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.toolkit.run.context import ToolkitContext

#: The source of the events.
DETECTOR = "vm-live-migrate-detector"
#: Label of VMs that belong to an upgrade of Harvester itself, and end with it.
_UPGRADE_LABEL = "harvesterhci.io/upgrade"


def restorable(instances: Iterable[Object]) -> list[str]:
    """Return the names of the VMs to start again, without paused VMs, which would run, and VMs of an upgrade."""
    return [
        objects.qualified_name(one)
        for one in instances
        if objects.text(objects.condition(one, "Paused"), "status") != "True"
        and not objects.text(one, "metadata", "labels", _UPGRADE_LABEL)
    ]


def stopped(context: ToolkitContext, instances: Iterable[Object]) -> list[Entry]:
    """Return the ledger's entries of VMs that are about to be stopped, without VMs of an upgrade."""
    since = ledger.now(context)
    users = [one for one in instances if not objects.text(one, "metadata", "labels", _UPGRADE_LABEL)]
    return [stopped_vm(one, node=context.node, since=since) for one in users]


async def recorded(context: ToolkitContext) -> list[str]:
    """Return the node's VMs in the plan's list; nothing without a list, or in one of another plan of that name."""
    found = await _find(context)
    if found is None or (context.plan_uid and plan_uid(found) not in {context.plan_uid, ""}):
        return []
    return listed_vms(found, context.node)


async def record(context: ToolkitContext, instances: Sequence[Object]) -> None:
    """Add the VMs to the node's entry in the plan's list; keep VMs of an earlier run, which are off now.

    Raises Conflict if the list has changed meanwhile, and StepFailed for a list of another owner.
    """
    plan = await _plan(context)
    found = await _find(context)
    if found is None:
        await _create(context, plan, restorable(instances))
        return
    if not is_list_of(found, plan):
        owner = described_owner(found) or "an earlier plan"
        raise StepFailed(
            f"ConfigMap {_name(context)} belongs to {owner}, not to UpgradePlan {context.plan}; delete it to "
            f"continue: kubectl delete configmap -n {HARVESTER_SYSTEM} {objects.name(found)}"
        )
    await _extend(context, plan, found, restorable(instances))


async def report_failed_record(context: ToolkitContext, cause: str) -> None:
    """Record the event of a list that could not be written."""
    text = f"ConfigMap {_name(context)} not written: {cause}"
    await context.events.record(DETECTOR, type_=WARNING, reason="RestoreVMConfigMapFailed", message=text)


async def _create(context: ToolkitContext, plan: Object, names: Sequence[str]) -> None:
    try:
        await context.client.create(CONFIG_MAPS, restore_list(plan, node=context.node, machines=names))
    except AlreadyExists as error:
        raise Conflict(str(error)) from error
    text = f"ConfigMap {_name(context)} created"
    await context.events.record(DETECTOR, type_=NORMAL, reason="RestoreVMConfigMapCreated", message=text)


async def _extend(context: ToolkitContext, plan: Object, found: Object, names: Sequence[str]) -> None:
    before = listed_vms(found, context.node)
    after = list(dict.fromkeys([*before, *names]))
    metadata = ownership(found, plan)
    is_listed = context.node in objects.mapping(found, "data")
    if after == before and is_listed and not metadata:
        return
    body: Object = {"metadata": metadata, "data": {context.node: ",".join(after)}}
    patch = MergePatch(body).at(objects.resource_version(found))
    await context.client.patch(CONFIG_MAPS, objects.name(found), patch, namespace=HARVESTER_SYSTEM, metadata_only=True)


async def _plan(context: ToolkitContext) -> Object:
    plan = await own_plan(context)
    if plan is None:
        raise StepFailed(f"UpgradePlan {context.plan} not found: its VMs cannot be recorded")
    return plan


async def _find(context: ToolkitContext) -> Object | None:
    return await context.client.find(CONFIG_MAPS, restore_vm_config_map(context.plan), namespace=HARVESTER_SYSTEM)


def _name(context: ToolkitContext) -> str:
    return f"{HARVESTER_SYSTEM}/{restore_vm_config_map(context.plan)}"
