"""Every running VM can be live-migrated to another node, by the rule of Harvester's upgrade helper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.facts.live_migration import MigrationTargets
from upgrade_manager.kube import objects
from webhook.check import Check, Finding
from webhook.cordons import uncordon_held
from webhook.listings import INSTANCES, NODES, read_all

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object
    from webhook.check import Subject


async def _find(subject: Subject) -> list[Finding]:
    """With restoreVM, VMs that cannot be migrated are shut down and restarted, as the user asked for."""
    if subject.spec.restore_vm:
        return []
    nodes, instances = await read_all(subject.cluster, NODES, INSTANCES)
    targets = MigrationTargets(await uncordon_held(subject.cluster, nodes))
    if targets.is_single:
        return []  # no VM can be migrated: all are shut down
    return [Finding(message=_message(instance, reason)) for instance, reason in targets.problems(instances)]


def _message(instance: Object, reason: str) -> str:
    namespace, name = objects.text(instance, "metadata", "namespace"), objects.name(instance)
    return (
        f"VirtualMachine {namespace}/{name} cannot be live-migrated: {reason}. Set spec.restoreVM to true, with which "
        f"the upgrade shuts it down and restarts it, or stop it: virtctl stop -n {namespace} {name}"
    )


CHECK = Check(name="VMs", field="spec", find=_find)
