"""Every running VM can be live-migrated to another node, by the rule of Harvester's upgrade helper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.remedy import Remedy
from upgrade_manager.api.text import name_list
from upgrade_manager.facts.live_migration import MigrationTargets, kept_cordoned, uncordoned, waiting_vms
from upgrade_manager.facts.vm_obstacles import has_machine, way_to_stop
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES
from webhook.check import Check, Finding
from webhook.cordons import held_nodes
from webhook.listings import INSTANCES, NODES, read_all

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from upgrade_manager.kube.objects import Object
    from webhook.check import Subject


_RESTORE = Remedy(
    "Set spec.restoreVM to true, with which the upgrade shuts it down and restarts it; or stop it yourself"
)


async def _find(subject: Subject) -> list[Finding]:
    """With restoreVM, VMs that cannot be migrated are shut down and restarted, as the user asked for."""
    if subject.spec.restore_vm:
        return []
    nodes, instances = await read_all(subject.cluster, NODES, INSTANCES)
    held = await held_nodes(subject.cluster, nodes)
    targets = MigrationTargets(uncordoned(nodes, held))
    if targets.is_single:
        return []  # no VM can be migrated: all are shut down
    found = [_finding(instance, reason) for instance, reason in targets.problems(instances)]
    return [*found, *_waiting(nodes, instances, held)]


def _waiting(nodes: Sequence[Object], instances: Sequence[Object], held: Collection[str]) -> list[Finding]:
    """Name the VMs whose only obstacle is a node that the upgrade itself has cordoned, and finishes first."""
    names = sorted(map(objects.qualified_name, waiting_vms(nodes, instances, held)))
    if not names:
        return []
    clause = kept_cordoned(name_list(sorted(held)), f"VMs {name_list(names)}")
    text = f"{clause[0].upper()}{clause[1:]}. This plan finishes that first, and then migrates them"
    return [Finding(problem=text, denies=False)]


def _finding(instance: Object, reason: str) -> Finding:
    """Return the reason and the remedies; the upgrade shuts down instances of VirtualMachines alone."""
    kind = VIRTUAL_MACHINES.kind if has_machine(instance) else VIRTUAL_MACHINE_INSTANCES.kind
    problem = f"{kind} {objects.qualified_name(instance)} cannot be live-migrated: {reason}"
    restore = (_RESTORE,) if has_machine(instance) else ()
    return Finding(problem=problem, remedies=(*restore, *way_to_stop(instance)))


CHECK = Check(name="VMs", field="spec", find=_find)
