"""Stops VMs, each one recorded before, unless users' PodDisruptionBudgets forbid it.

vm_shutdown.py and evacuation.py choose the VMs; facts/forbidden_stops.py has the rule, by which
blockers/forbidden_stops.py names the budgets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import ANNOTATION_FORBIDDEN_STOPS
from upgrade_manager.api.text import name_list
from upgrade_manager.facts.forbidden_stops import LAUNCHERS, Permissions, read_report, report_of
from upgrade_manager.facts.vm_obstacles import stopping, without_machine
from upgrade_manager.facts.vm_start import is_stopping
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import KubeError
from upgrade_manager.kube.resources import POD_DISRUPTION_BUDGETS, PODS, VIRTUAL_MACHINES
from upgrade_manager.toolkit.run import job_report, ledger
from upgrade_manager.toolkit.vms import kubevirt, restore_list

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.toolkit.run.context import ToolkitContext


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningVM:
    """An instance, and its VirtualMachine, by which it is stopped."""

    instance: Object
    #: None if it does not exist.
    machine: Object | None

    @property
    def name(self) -> str:
        """Namespace and name."""
        return objects.qualified_name(self.instance)

    @property
    def is_ending(self) -> bool:
        """True if its stop is requested."""
        is_requested = self.machine is not None and is_stopping(self.machine, self.instance)
        return is_requested or objects.is_deleting(self.instance)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """The VMs whose stop was requested, or should be."""

    #: The reason why each one still runs, with the remedy, by its name.
    running: dict[str, str]
    #: True if a budget forbids a stop.
    is_forbidden: bool = False


async def read(context: ToolkitContext, instances: Iterable[Object]) -> list[RunningVM]:
    """Return the instances with their VirtualMachines."""
    found = []
    for one in instances:
        namespace, name = objects.key(one)
        found.append(
            RunningVM(instance=one, machine=await context.client.find(VIRTUAL_MACHINES, name, namespace=namespace))
        )
    return found


async def stop(context: ToolkitContext, vms: Sequence[RunningVM], *, restores: bool) -> Stopped:
    """Request the stops that no budget forbids, unless requested before.

    Each VM is recorded before: in the plan's ledger, and with `restores` for restore-vm. Raises KubeError of a list or
    a record, after which no VM is stopped.
    """
    if not vms:
        return Stopped(running={})
    why = {one.name: kubevirt.described(stopping(one.instance)) for one in vms}
    why |= {one.name: kubevirt.described(without_machine(one.instance)) for one in vms if one.machine is None}
    left = [one for one in vms if one.machine is not None and not one.is_ending]
    permissions = await _permissions(context, ending=[one for one in vms if one.is_ending], any_left=bool(left))
    forbidden = {one.name: permissions.forbidding(one.instance) for one in left}
    permitted = [one for one in left if not forbidden[one.name] and _use(permissions, one)]
    refused = {name: budgets for name, budgets in forbidden.items() if budgets}
    await _report(context, list(refused))
    why |= {one.name: _waiting(refused.get(one.name, ())) for one in left if one not in permitted}
    instances = [one.instance for one in permitted]
    await ledger.record(context, restore_list.stopped(context, instances))
    if instances and restores:
        await restore_list.record(context, instances)
    why |= {one.name: problem for one in permitted if (problem := await _request(context, one))}
    return Stopped(running=why, is_forbidden=len(permitted) < len(left))


async def _permissions(context: ToolkitContext, *, ending: Iterable[RunningVM], any_left: bool) -> Permissions:
    """Read the budgets, and the launcher Pods if there are budgets; VMs that are ending use them up."""
    budgets = (await context.client.list(POD_DISRUPTION_BUDGETS)).items if any_left else []
    place = f"spec.nodeName={context.node}"
    listed = await context.client.list(PODS, label_selector=LAUNCHERS, field_selector=place) if budgets else None
    permissions = Permissions(budgets, listed.items if listed is not None else ())
    for one in ending:
        permissions.use(one.instance)
    return permissions


def _use(permissions: Permissions, vm: RunningVM) -> bool:
    """Count the stop of the VM; return False if its budgets permit no further one at present."""
    if permissions.is_used_up(vm.instance):
        return False
    permissions.use(vm.instance)
    return True


def _waiting(budgets: Sequence[Object]) -> str:
    if not budgets:
        return "its PodDisruptionBudgets permit its stop once other VMs have stopped"
    names = name_list([objects.qualified_name(one) for one in budgets])
    return f"PodDisruptionBudget {names} forbids its stop"


async def _request(context: ToolkitContext, vm: RunningVM) -> str:
    try:
        return await kubevirt.stop(context.client, vm.instance)
    except KubeError as error:
        return str(error)


async def _report(context: ToolkitContext, names: Sequence[str]) -> None:
    """Annotate the Job with the VMs that budgets keep running, for the manager."""

    def value_of(present: str) -> str:
        since = present.partition(" ")[0] if read_report(present) else ledger.now(context)
        return report_of(names, since=since) if names else ""

    await job_report.report(context, ANNOTATION_FORBIDDEN_STOPS, value_of)
