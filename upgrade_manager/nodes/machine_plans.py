"""Rancher's machine-plan Secrets by node, with the problems of their Machines.

node_view.py calls it for each decision, and gate.py for nodes that take no part; facts/machine_plan.py reads a Secret.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import (
    ANNOTATION_ACKNOWLEDGED,
    ANNOTATION_MACHINE,
    FLEET_LOCAL,
    RKE_DRAIN_ERROR,
    RKE_DRAIN_OPTIONS,
    RKE_POST_DRAIN,
    RKE_PRE_DRAIN,
)
from upgrade_manager.api.text import name_list
from upgrade_manager.facts import machine_plan, pairing
from upgrade_manager.facts.condition_words import condition_words
from upgrade_manager.facts.machine_plan import NO_HOOK, Hook
from upgrade_manager.facts.removal import deletion, ways_out
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import MACHINES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.store import Store

_SHOW_MACHINES = f"Show the Machines and their nodes: kubectl get {MACHINES.name} -n {FLEET_LOCAL}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MachinePlan:
    """The fields of a machine-plan Secret that decisions need."""

    secret: str = ""
    uid: str = ""
    #: The value of the annotation that counts acknowledged requests.
    counted: str = ""
    machine: str = ""
    machine_problem: str = ""
    machine_ways_out: tuple[str, ...] = ()
    plan_error: str = ""
    drains: bool = False
    under_way: bool = False
    drain_error: str = ""
    pre_drain: Hook = NO_HOOK
    post_drain: Hook = NO_HOOK
    tier: int | None = None

    @property
    def pending(self) -> bool:
        """True while Rancher waits for the manager."""
        return self.pre_drain.pending or self.post_drain.pending

    def without_hooks(self) -> MachinePlan:
        """Return the Secret of a single node, on which an earlier upgrade of several nodes may have left hooks."""
        left = replace(self, pre_drain=NO_HOOK, post_drain=NO_HOOK, drain_error="", tier=None)
        return replace(left, drains=False, under_way=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The fields of a Machine that decisions need."""

    name: str
    node: str
    problem: str
    #: The remedies for the problem.
    ways_out: tuple[str, ...]
    plan_error: str

    @classmethod
    def of(cls, machine: Object) -> Machine:
        """Read the object."""
        applied = objects.condition(machine, "PlanApplied")
        is_refused = objects.text(applied, "status") == "False"
        return cls(
            name=objects.name(machine),
            node=machine_plan.node_of_machine(machine),
            problem=deletion(machine),
            ways_out=ways_out(MACHINES, machine),
            plan_error=condition_words(applied) or "PlanApplied is False" if is_refused else "",
        )

    def explain(self, plan: MachinePlan) -> MachinePlan:
        """Return the Machine's Secret with the Machine's problems."""
        return replace(plan, machine_problem=self.problem, machine_ways_out=self.ways_out, plan_error=self.plan_error)


NO_MACHINE_PLAN = MachinePlan()


def machine_nodes(machines: Store) -> list[str]:
    """Return the nodes of the Machines, which are those that Rancher upgrades."""
    return machine_plan.machine_nodes(machines.list())


def plan_errors(machines: Store) -> dict[str, str]:
    """Return the nodes of the Machines whose plan Rancher cannot apply, each with Rancher's message."""
    return {one.node: one.plan_error for one in machines.derive(Machine.of) if one.node and one.plan_error}


def machine_plans(secrets: Store, known: Mapping[str, Machine]) -> Mapping[str, list[MachinePlan]]:
    """Return the Secrets by node; Secrets without a Machine or a node are skipped."""
    result: dict[str, list[MachinePlan]] = {}
    for plan in secrets.derive(_read_secret):
        machine = known.get(plan.machine)
        if machine is not None and machine.node:
            if machine.problem or machine.plan_error:
                plan = machine.explain(plan)  # noqa: PLW2901
            result.setdefault(machine.node, []).append(plan)
    return result


def counting(plans: Sequence[MachinePlan], machine: Machine | None, *, node: str) -> MachinePlan:
    """Return the Secret of the Machine that the Node names.

    While the Node names none of several Machines, or one whose Secret does not exist, another one is returned, with a
    pending hook if there is one, and its node is not drained.
    """
    is_named = machine is not None and machine.node == node
    named = next((one for one in plans if machine is not None and one.machine == machine.name), None)
    if named is not None or not plans:
        return named or NO_MACHINE_PLAN
    if len(plans) == 1 and (machine is None or not is_named):
        return plans[0]
    if machine is not None and is_named:
        first = next((one for one in plans if one.pending), plans[0])
        problem = (
            f"the Node's annotation {ANNOTATION_MACHINE} names {machine.name}, whose machine-plan Secret is missing"
        )
        return replace(first, machine_problem=problem, machine_ways_out=(_SHOW_MACHINES,))
    first = next((one for one in plans if one.pending), plans[0])
    others = name_list(sorted(one.machine for one in plans if one is not first))
    problem = f"it names the same node as {others}, and the Node's annotation {ANNOTATION_MACHINE} names neither"
    way_out = f"Name its Machine on the Node: {pairing.correct_annotation(node, [one.machine for one in plans])}"
    return replace(first, machine_problem=problem, machine_ways_out=(way_out,))


def _read_secret(secret: Object) -> MachinePlan:
    return MachinePlan(
        secret=objects.name(secret),
        uid=objects.uid(secret),
        counted=objects.annotations_of(secret).get(ANNOTATION_ACKNOWLEDGED, ""),
        machine=machine_plan.machine_of(secret),
        drains=any(key in objects.annotations_of(secret) for key in (RKE_DRAIN_OPTIONS, RKE_PRE_DRAIN, RKE_POST_DRAIN)),
        under_way=machine_plan.is_under_way(secret),
        drain_error=objects.excerpt(secret, "metadata", "annotations", RKE_DRAIN_ERROR),
        pre_drain=machine_plan.pre_drain_hook(secret),
        post_drain=machine_plan.post_drain_hook(secret),
        tier=machine_plan.tier_of(secret),
    )
