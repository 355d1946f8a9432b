"""Rules about the start of VMs: whether KubeVirt is about to start or to stop a VM, and whether the VM runs.

The Jobs stop and start VMs by these rules (toolkit/vms/kubevirt.py); pipeline/ending/settlement.py decides by them
which stopped VMs run again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import HARVESTER_SYSTEM
from upgrade_manager.api.text import name_list
from upgrade_manager.facts.final_phases import is_final
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Sequence

    from upgrade_manager.kube.objects import Object

#: Run strategies of VMs that KubeVirt starts by itself.
_STARTS_ITSELF = frozenset({"Always"})


def runs(instance: Object | None) -> bool:
    """Return True for an instance whose guest runs."""
    is_running = objects.text(instance, "status", "phase") == "Running"
    return instance is not None and is_running and not objects.is_deleting(instance)


def awaits_instance(machine: Object, instance: Object | None) -> bool:
    """Return True for a VM that does not run yet, and that KubeVirt is about to start."""
    if instance is None or is_final(instance):
        return starts_by_itself(machine)
    return not runs(instance) and not objects.is_deleting(instance) and not is_stopping(machine, instance)


def is_stopping(machine: Object, instance: Object) -> bool:
    """Return True if the VM is to have no instance, or a stop of this instance is requested."""
    if objects.text(machine, "spec", "runStrategy") == "Halted" or objects.value(machine, "spec", "running") is False:
        return True
    uids = {objects.text(one, "uid") for one in _requests(machine, "Stop")}
    return bool(uids & {objects.uid(instance), ""})


def starts_by_itself(machine: Object) -> bool:
    """Return True for a VM that gets an instance without another request."""
    strategy = objects.text(machine, "spec", "runStrategy")
    is_wanted = strategy in _STARTS_ITSELF or objects.is_true(machine, "spec", "running")
    return is_wanted or bool(_requests(machine, "Start"))


def _requests(machine: Object, action: str) -> list[object]:
    return [
        one for one in objects.items(machine, "status", "stateChangeRequests") if objects.text(one, "action") == action
    ]


def not_restarted(job: str, *, cause: str, vms: Sequence[str] = ()) -> str:
    """Return the message of the event RestoreVMFailed, which the Job's attempts and the manager record."""
    off = f"Start the VMs that are off{f': {name_list(vms)}' if vms else ''}"
    return f"Job {HARVESTER_SYSTEM}/{job}: restarting VMs failed; the upgrade continues. {off}. Cause: {cause}"
