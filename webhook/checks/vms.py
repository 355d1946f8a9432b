"""Every running VM can be live-migrated to another node, by the rule of Harvester's upgrade helper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import WITNESS_LABEL
from webhook import fields
from webhook.check import Check, Finding
from webhook.listings import INSTANCES, NODES, read_all
from webhook.node_affinity import NodeSet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from upgrade_manager.kube.objects import Object
    from webhook.check import Subject

_FINAL = frozenset({"Succeeded", "Failed"})
_AFFINITY = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")


async def _find(subject: Subject) -> list[Finding]:
    """With restoreVM, VMs that cannot be migrated are shut down and restarted, as the user asked for."""
    if subject.spec.restore_vm:
        return []
    nodes, instances = await read_all(subject.cluster, NODES, INSTANCES)
    workers = [node for node in nodes if WITNESS_LABEL not in fields.mapping(node, "metadata", "labels")]
    if len(workers) <= 1:
        return []  # no VM can be migrated: all are shut down
    schedulable = [node for node in workers if not fields.is_true(node, "spec", "unschedulable")]
    if len(schedulable) > 1:
        # Most VMs have none of the fields that are kept, and can be migrated to one of these nodes.
        instances = [one for one in instances if one.get("spec")]
    if not instances:
        return []
    targets = _Targets(schedulable)
    reasons = ((one, targets.problem(one)) for one in instances if fields.text(one, "status", "phase") not in _FINAL)
    return [Finding(message=_message(instance, reason)) for instance, reason in reasons if reason]


class _Targets:
    """The nodes to which VMs can be migrated."""

    def __init__(self, schedulable: Sequence[Object]) -> None:
        self._nodes = NodeSet(schedulable)
        #: By affinity, of which there are few.
        self._matching: dict[str, int] = {}

    def problem(self, instance: Object) -> str:
        """Return why the instance cannot be migrated; empty if it can."""
        spec = fields.mapping(instance, "spec")
        if isinstance(spec.get("nodeSelector"), dict):
            return "it has a node selector"
        if isinstance(fields.value(spec, "domain", "devices", "hostDevices"), list):
            return "it uses host devices"
        affinity = fields.value(spec, *_AFFINITY)
        others = self._nodes.without(fields.text(instance, "status", "nodeName"))
        if not isinstance(affinity, dict):
            return "" if others else "no other node is schedulable"
        return "" if others & self._match(affinity) else "no other schedulable node matches its node affinity"

    def _match(self, affinity: Object) -> int:
        key = repr(affinity)
        if key not in self._matching:
            self._matching[key] = self._nodes.matching(affinity)
        return self._matching[key]


def _message(instance: Object, reason: str) -> str:
    namespace, name = fields.text(instance, "metadata", "namespace"), fields.name(instance)
    return (
        f"VirtualMachine {namespace}/{name} cannot be live-migrated: {reason}. Set spec.restoreVM to true, with which "
        f"the upgrade shuts it down and restarts it, or stop it: virtctl stop -n {namespace} {name}"
    )


CHECK = Check(name="VMs", field="spec", find=_find)
