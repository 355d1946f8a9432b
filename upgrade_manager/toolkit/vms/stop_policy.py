"""Decides whether the upgrade stops a VM whose migration has failed: the VM's annotation, else the plan's option.

evacuation.py calls it; api/migration_failure.py has the values and the default. An annotation of a VirtualMachine does
not reach its instance, so that the VirtualMachine is read, which has the instance's name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import ANNOTATION_INVALID_POLICIES, ANNOTATION_ON_MIGRATION_FAILURE
from upgrade_manager.api.migration_failure import MAX_SHOWN, VALUES, OnMigrationFailure, policy, read_policy, report_of
from upgrade_manager.api.text import name_list
from upgrade_manager.kube import objects
from upgrade_manager.toolkit.run import job_report
from upgrade_manager.toolkit.run.own_plan import wanted_plan
from upgrade_manager.toolkit.run.plan_events import WARNING
from upgrade_manager.toolkit.vms.restore_list import DETECTOR

if TYPE_CHECKING:
    from collections.abc import Sequence

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.toolkit.run.context import ToolkitContext
    from upgrade_manager.toolkit.vms.vm_stop import RunningVM

_KEY = ANNOTATION_ON_MIGRATION_FAILURE


async def to_stop(context: ToolkitContext, vms: Sequence[RunningVM]) -> list[RunningVM]:
    """Return those of the VMs that the upgrade stops; a VM that is stopping already stays one of them.

    The Job of a plan that was deleted stops no further VM, whatever its annotation says: no user answers for it.
    """
    if not vms:
        await job_report.clear(context, ANNOTATION_INVALID_POLICIES)
        return []
    plan = await wanted_plan(context)
    if plan is None:
        return [one for one in vms if one.is_ending]
    default = _of_plan(plan)
    await _warn_of_invalid(context, vms)
    return [one for one in vms if one.is_ending or _of_vm(one, default) is OnMigrationFailure.STOP]


def _of_plan(plan: Object) -> OnMigrationFailure:
    """Return the policy of the plan."""
    requested = objects.text(plan, "spec", "nodeUpgradeOption", "onMigrationFailure")
    return policy(requested, kind=objects.text(plan, "status", "toolkitImage", "kind"))


async def _warn_of_invalid(context: ToolkitContext, vms: Sequence[RunningVM]) -> None:
    values = {one.name: objects.annotations_of(one.machine or {}).get(_KEY) for one in vms}
    bad = {name: value for name, value in values.items() if value is not None and not read_policy(value)}
    if not bad:
        await job_report.clear(context, ANNOTATION_INVALID_POLICIES)
        return
    await job_report.report(context, ANNOTATION_INVALID_POLICIES, lambda _: report_of(bad))
    names = name_list([f"{name} ({value[:MAX_SHOWN]!r})" for name, value in bad.items()])
    text = f"Annotation {_KEY} is neither {VALUES}, so that the upgrade does not stop these VMs: {names}"
    await context.events.record_once(DETECTOR, type_=WARNING, reason="AnnotationInvalid", message=text)


def _of_vm(vm: RunningVM, default: OnMigrationFailure) -> OnMigrationFailure:
    """Return the policy of the VM; an annotation that is not valid stops no VM."""
    annotation = objects.annotations_of(vm.machine or {}).get(_KEY)
    if annotation is None:
        return default
    return read_policy(annotation) or OnMigrationFailure.WAIT
