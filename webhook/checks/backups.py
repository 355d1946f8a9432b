"""No backup of a VM is in progress or can start: it would hold the VM on its node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.remedy import Remedy
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
    findings: list[Finding] = []
    missing: list[NotInstalled] = []
    kinds = await read_each(subject.cluster, BACKUPS, BACKUP_SCHEDULES)
    for found, describe in zip(kinds, (_backup, _schedule), strict=True):
        if isinstance(found, NotInstalled):
            missing.append(found)
        else:
            findings += filter(None, map(describe, found))
    if missing and not findings:
        raise missing[0]
    return findings


def _backup(backup: Object) -> Finding | None:
    if objects.is_true(backup, "status", "readyToUse") or isinstance(objects.value(backup, "status", "error"), dict):
        return None
    progress = objects.number(backup, "status", "progress") or 0
    delete = f"kubectl delete {VIRTUAL_MACHINE_BACKUPS.name} {_place(backup)}"
    return Finding(
        problem=f"VirtualMachineBackup {objects.qualified_name(backup)} is in progress ({progress} %)",
        remedies=(Remedy("Wait until it is ready, or delete it", command=delete),),
    )


def _schedule(schedule: Object) -> Finding | None:
    if objects.is_true(schedule, "status", "suspended"):
        return None
    about = f"ScheduleVMBackup {objects.qualified_name(schedule)}"
    if objects.is_true(schedule, "spec", "suspend"):
        show = f"kubectl describe {SCHEDULE_VM_BACKUPS.name} {_place(schedule)}"
        wait = Remedy("Wait until its status.suspended is true", command=show)
        return Finding(problem=f"{about} is being suspended", remedies=(wait,))
    patch = f"kubectl patch {SCHEDULE_VM_BACKUPS.name} {_place(schedule)} --type merge -p "
    suspend, resume = (f"""{patch}'{{"spec":{{"suspend":{value}}}}}'""" for value in ("true", "false"))
    remedy = Remedy("Suspend it until the upgrade has ended", command=suspend, undo=resume)
    return Finding(problem=f"{about} is not suspended", remedies=(remedy,))


def _place(obj: Object) -> str:
    return f"-n {objects.text(obj, 'metadata', 'namespace')} {objects.name(obj)}"


CHECK = Check(name="backups", field="spec", find=_find)
