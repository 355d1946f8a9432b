"""No backup of a VM is in progress or can start: it would hold the VM on its node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import SCHEDULE_VM_BACKUPS, VIRTUAL_MACHINE_BACKUPS
from webhook.check import Check, Finding
from webhook.cluster import NotInstalled
from webhook.listings import BACKUP_SCHEDULES, BACKUPS, read_each

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object
    from webhook.check import Subject


async def _find(subject: Subject) -> list[Finding]:
    """Check each kind; raise NotInstalled for a missing kind only if the other kind has no problem."""
    messages: list[str] = []
    missing: list[NotInstalled] = []
    kinds = await read_each(subject.cluster, BACKUPS, BACKUP_SCHEDULES)
    for found, describe in zip(kinds, (_backup, _schedule), strict=True):
        if isinstance(found, NotInstalled):
            missing.append(found)
        else:
            messages += filter(None, map(describe, found))
    if missing and not messages:
        raise missing[0]
    return [Finding(message=message) for message in messages]


def _backup(backup: Object) -> str:
    if objects.is_true(backup, "status", "readyToUse") or isinstance(objects.value(backup, "status", "error"), dict):
        return ""
    progress = objects.number(backup, "status", "progress") or 0
    delete = f"kubectl delete {VIRTUAL_MACHINE_BACKUPS.name} {_place(backup)}"
    about = f"VirtualMachineBackup {objects.qualified_name(backup)}"
    return f"{about} is in progress ({progress} %). Wait until it is ready, or delete it: {delete}"


def _schedule(schedule: Object) -> str:
    if objects.is_true(schedule, "status", "suspended"):
        return ""
    about = f"ScheduleVMBackup {objects.qualified_name(schedule)}"
    if objects.is_true(schedule, "spec", "suspend"):
        show = f"kubectl describe {SCHEDULE_VM_BACKUPS.name} {_place(schedule)}"
        return f"{about} is being suspended. Wait until its status.suspended is true: {show}"
    patch = """--type merge -p '{"spec":{"suspend":true}}'"""
    suspend = f"kubectl patch {SCHEDULE_VM_BACKUPS.name} {_place(schedule)} {patch}"
    return f"{about} is not suspended. Suspend it until the upgrade has ended: {suspend}"


def _place(obj: Object) -> str:
    return f"-n {objects.text(obj, 'metadata', 'namespace')} {objects.name(obj)}"


CHECK = Check(name="backups", field="spec", find=_find)
