"""Harvester's rule for VMs that cannot be live-migrated; the rule ignores KubeVirt's condition LiveMigratable.

The webhook's check `vms` refuses plans on clusters with such VMs, and the Jobs (toolkit/vms/vm_shutdown.py) stop
such VMs before their node is drained. The webhook and the Jobs share this module, so that the webhook reports every VM
that a Job would stop. VMs that only a cordon of an earlier upgrade keeps on their node are a warning of the webhook,
and hold their node back at the gate (pipeline/node_upgrade/held_targets.py).
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import WITNESS_LABEL
from upgrade_manager.facts.final_phases import is_final
from upgrade_manager.facts.node_affinity import NodeSet
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from upgrade_manager.kube.objects import Object

_AFFINITY = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")


def uncordoned(nodes: Sequence[Object], names: Collection[str]) -> Sequence[Object]:
    """Return the nodes, of which these count as schedulable for this rule."""
    return [{**node, "spec": {}} if objects.name(node) in names else node for node in nodes] if names else nodes


def waiting_vms(nodes: Sequence[Object], instances: Iterable[Object], held: Collection[str]) -> list[Object]:
    """Return the instances whose only obstacle is that an earlier upgrade keeps the `held` nodes cordoned.

    No upgrade stops such a VM: it waits until the held node is finished or uncordoned.
    """
    targets = MigrationTargets(uncordoned(nodes, held))
    if not held or targets.is_single:
        return []
    return [one for one, _ in MigrationTargets(nodes).problems(instances) if not targets.problem(one)]


def kept_cordoned(node: str, vms: str) -> str:
    """Return the clause about the node whose cordon keeps these VMs where they are."""
    return f"an earlier upgrade keeps {node} cordoned, and {vms} have no other node"


class MigrationTargets:
    """The nodes to which VMs can be migrated: all but witness nodes and unschedulable ones."""

    def __init__(self, nodes: Sequence[Object]) -> None:
        workers = [node for node in nodes if WITNESS_LABEL not in objects.mapping(node, "metadata", "labels")]
        #: True if the cluster has at most one node for VMs, so that no VM can be migrated.
        self.is_single = len(workers) <= 1
        self._schedulable = [node for node in workers if not objects.is_true(node, "spec", "unschedulable")]
        #: The matching nodes by affinity; a cluster has few different affinities.
        self._matching: dict[str, int] = {}

    @cached_property
    def _nodes(self) -> NodeSet:
        """The schedulable nodes, indexed once an instance has an affinity; few clusters have such an instance."""
        return NodeSet(self._schedulable)

    def problems(self, instances: Iterable[Object]) -> Iterator[tuple[Object, str]]:
        """Yield the running instances that cannot be migrated, and why."""
        for instance in instances:
            if not is_final(instance) and (problem := self.problem(instance)):
                yield instance, problem

    def problem(self, instance: Object) -> str:
        """Return the reason why the instance cannot be migrated; empty if the instance can be migrated."""
        if self.is_single:
            return "the cluster has no second node for VMs"
        spec = objects.mapping(instance, "spec")
        if not spec and len(self._schedulable) > 1:
            return ""  # nearly all instances, if the caller reads only the fields of this rule
        if isinstance(spec.get("nodeSelector"), dict):
            return "it has a node selector"
        if isinstance(objects.value(spec, "domain", "devices", "hostDevices"), list):
            return "it uses host devices"
        affinity = objects.value(spec, *_AFFINITY)
        others = self._nodes.without(objects.text(instance, "status", "nodeName"))
        if not isinstance(affinity, dict):
            return "" if others else "no other node is schedulable"
        return "" if others & self._match(affinity) else "no other schedulable node matches its node affinity"

    def _match(self, affinity: Object) -> int:
        key = repr(affinity)
        if key not in self._matching:
            self._matching[key] = self._nodes.matching(affinity)
        return self._matching[key]
