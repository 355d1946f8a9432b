"""Rancher's machine-plan Secrets: the node of each, its hooks and its requests, read from their metadata.

A request is one drain. Rancher sets an equal value for each, and a Secret has no generation. Therefore the patch that
acknowledges a pre-drain hook (pipeline/node_upgrade/effects.py) also counts it, in an annotation on the same Secret,
which Rancher does not remove. A hook that is pending after its request was counted is the next request, also if no
watch has shown its removal, and a crash cannot come between the two. A Job answers one request
(nodes/node_view.py).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from upgrade_manager.api.keys import (
    ANNOTATION_ACKNOWLEDGED,
    ANNOTATION_MACHINE,
    ANNOTATION_POST_HOOK,
    ANNOTATION_PRE_HOOK,
    FLEET_LOCAL,
    RKE_CONTROL_PLANE_ROLE,
    RKE_DRAIN_DONE,
    RKE_DRAIN_ERROR,
    RKE_DRAIN_OPTIONS,
    RKE_ETCD_ROLE,
    RKE_INIT_NODE,
    RKE_MACHINE_NAME,
    RKE_POST_DRAIN,
    RKE_PRE_DRAIN,
    RKE_WORKER_ROLE,
)
from upgrade_manager.api.remedy import Remedy
from upgrade_manager.api.text import name_list
from upgrade_manager.facts.condition_words import condition_words
from upgrade_manager.facts.removal import deletion, ways_out
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import MACHINES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.store import Store

#: Rancher's annotation of a hook, by the manager's annotation that acknowledges the hook.
REQUESTED = {ANNOTATION_PRE_HOOK: RKE_PRE_DRAIN, ANNOTATION_POST_HOOK: RKE_POST_DRAIN}
#: The members of the drain options that list hooks, by the manager's annotation.
_MEMBERS = {ANNOTATION_PRE_HOOK: "preDrainHooks", ANNOTATION_POST_HOOK: "postDrainHooks"}
#: Annotations of a drain.
_READ = frozenset(
    {
        *REQUESTED,
        *REQUESTED.values(),
        ANNOTATION_ACKNOWLEDGED,
        RKE_DRAIN_DONE,
        RKE_DRAIN_ERROR,
        RKE_DRAIN_OPTIONS,
    }
)
#: The roles by tier; the first role of a machine in this order decides its tier.
_TIERS = {1: RKE_ETCD_ROLE, 2: RKE_CONTROL_PLANE_ROLE, 3: RKE_WORKER_ROLE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """Rancher's pre-drain or post-drain hook of one node."""

    #: Rancher's value, byte for byte; empty without a hook for the manager.
    requested: str = ""
    #: The value that the manager acknowledged last.
    acknowledged: str = ""
    #: Annotations of the hooks in these drain options that other controllers have not acknowledged.
    others: tuple[str, ...] = ()

    @property
    def pending(self) -> bool:
        """True while Rancher waits for the hook to be acknowledged."""
        return bool(self.requested) and self.requested != self.acknowledged


#: The value of the annotation that counts acknowledged requests.
_COUNT = re.compile(r"(?P<plan>[0-9a-zA-Z-]{1,64}) (?P<number>[0-9]{1,6})", re.ASCII)
#: Characters of a Secret's uid in a request: Rancher creates the Secret of a reinstalled node again.
_UID = 8
#: Lists the Machines and their nodes.
SHOW_MACHINES = f"kubectl get {MACHINES.name} -n {FLEET_LOCAL}"
#: Machines of one node that the remedies name.
_CHOICES = 3
_LIST_MACHINES = Remedy("Show the Machines and their nodes", command=SHOW_MACHINES)
#: The hook of a node on which Rancher has set no hook for the manager.
NO_HOOK = Hook()


def node_of(secret: Mapping[str, Any], machines: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the node of the Secret's Machine; empty without a Machine or while it has no node."""
    machine = machines.get(machine_of(secret))
    return node_of_machine(machine) if machine else ""


def machine_of(secret: Mapping[str, Any]) -> str:
    """Return the name of the Secret's Machine; empty without the label."""
    return str((secret["metadata"].get("labels") or {}).get(RKE_MACHINE_NAME, ""))


def node_of_machine(machine: Mapping[str, Any]) -> str:
    """Return the name of the Machine's node; empty while it has none."""
    return str(((machine.get("status") or {}).get("nodeRef") or {}).get("name", ""))


def machine_nodes(machines: Iterable[dict[str, Any]]) -> list[str]:
    """Return the nodes of the Machines, which are those that Rancher upgrades."""
    nodes = (node_of_machine(one) for one in machines if not objects.is_deleting(one))
    return [node for node in nodes if node]


def tier_of(secret: Mapping[str, Any]) -> int | None:
    """Return the tier of the Secret's machine: 0 init node, 1 etcd, 2 control plane, 3 worker.

    A machine without a role has the tier None.
    """
    labels = secret["metadata"].get("labels") or {}
    roles = [tier for tier, role in _TIERS.items() if labels.get(role) == "true"]
    return 0 if roles[:1] == [1] and labels.get(RKE_INIT_NODE) == "true" else next(iter(roles), None)


def pre_drain_hook(secret: Mapping[str, Any]) -> Hook:
    """Return the hook before Rancher drains the node."""
    return _hook(secret, ANNOTATION_PRE_HOOK)


def post_drain_hook(secret: Mapping[str, Any]) -> Hook:
    """Return the hook after Rancher has drained the node and upgraded its Kubernetes."""
    return _hook(secret, ANNOTATION_POST_HOOK)


def is_pending(secret: Mapping[str, Any]) -> bool:
    """Return True while Rancher waits for the manager to acknowledge a hook."""
    return pre_drain_hook(secret).pending or post_drain_hook(secret).pending


def is_draining(secret: Mapping[str, Any]) -> bool:
    """Return True from the begin of a drain with hooks for the manager until Rancher has uncordoned the node."""
    annotations = secret["metadata"].get("annotations") or {}
    options = annotations.get(RKE_DRAIN_OPTIONS, "")
    names = (*_hook_names(options, "preDrainHooks"), *_hook_names(options, "postDrainHooks"))
    is_requested = bool(pre_drain_hook(secret).requested or post_drain_hook(secret).requested)
    return is_requested or not REQUESTED.keys().isdisjoint(names)


def held_nodes(
    cordoned: Collection[str],
    secrets: Iterable[Mapping[str, Any]],
    machines: Iterable[Mapping[str, Any]],
    *,
    when: Callable[[Mapping[str, Any]], bool] = is_draining,
) -> frozenset[str]:
    """Return which of the cordoned nodes an upgrade has cordoned: their drain with hooks for the manager has begun.

    Another `when` selects by their Secrets.
    """
    by_name = {str(machine["metadata"].get("name")): machine for machine in machines}
    draining = {node_of(secret, by_name) for secret in secrets if when(secret)}
    return frozenset(draining.intersection(cordoned))


def awaits_drain(secret: Mapping[str, Any]) -> bool:
    """Return True while Rancher waits for the manager's pre-drain hook, before it drains the node."""
    return pre_drain_hook(secret).pending and not post_drain_hook(secret).requested


def is_under_way(secret: Mapping[str, Any]) -> bool:
    """Return True while Rancher drains the node, or has drained it, and need not wait for the manager's pre-drain hook.

    Another client may have acknowledged the hook, or the drain options may lack it.
    """
    options = (secret["metadata"].get("annotations") or {}).get(RKE_DRAIN_OPTIONS, "")
    hook = pre_drain_hook(secret)
    if hook.requested:
        return bool(options) and not hook.pending
    return bool(options) and ANNOTATION_PRE_HOOK not in _hook_names(options, "preDrainHooks")


def counted_requests(recorded: str, plan_uid: str) -> int:
    """Return the number of the plan's requests that are acknowledged, by the Secret's annotation."""
    found = _COUNT.fullmatch(recorded)
    return int(found["number"]) if found and found["plan"] == plan_uid else 0


def request_count(plan_uid: str, number: int) -> str:
    """Return the value of the annotation once that request is acknowledged."""
    return f"{plan_uid} {number}"


def request_id(secret_uid: str, number: int, *, again: bool = False) -> str:
    """Return the label of the Jobs that answer the request, `again` if its node was uncordoned after the drain."""
    return f"{secret_uid[:_UID]}.{number}{'.again' if again else ''}"


def acknowledgements(secret: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the keys of the acknowledgements that an earlier upgrade has left, and that Rancher may still read.

    Once Rancher has drained the node, it does not wait for the pre-drain hook: the acknowledgement shows that the node
    is under way, and Rancher removes it when it uncordons the node. A node that waits for its post-drain hook is
    finished by the next plan, whose own request the acknowledgement must not answer.
    """
    present = secret["metadata"].get("annotations") or {}
    read = REQUESTED.keys() - ({ANNOTATION_PRE_HOOK} if _is_drained(present) else set())
    return tuple(key for key in REQUESTED if key in present and key in read)


def _is_drained(annotations: Mapping[str, str]) -> bool:
    options = annotations.get(RKE_DRAIN_OPTIONS)
    keys = (RKE_DRAIN_DONE, RKE_PRE_DRAIN, ANNOTATION_PRE_HOOK)
    is_upgrading = bool(options) and RKE_POST_DRAIN not in annotations
    return is_upgrading and all(annotations.get(key) == options for key in keys)


def annotations_read(secret: Mapping[str, Any]) -> dict[str, str]:
    """Return the annotations that this module reads: those of drains, and of the hooks that their options list."""
    present = secret["metadata"].get("annotations") or {}
    values = [present.get(key, "") for key in (RKE_DRAIN_OPTIONS, RKE_PRE_DRAIN, RKE_POST_DRAIN)]
    hooks = {name for value in values for member in _MEMBERS.values() for name in _hook_names(value, member)}
    return {key: value for key, value in present.items() if key in _READ or key in hooks}


def begun_drains(secrets: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the names of the Secrets with a drain that has begun, and that has hooks for the manager."""
    return sorted(secret["metadata"]["name"] for secret in secrets if is_draining(secret))


def _hook(secret: Mapping[str, Any], acknowledgement: str) -> Hook:
    annotations = secret["metadata"].get("annotations") or {}
    value = annotations.get(REQUESTED[acknowledgement], "")
    names = _hook_names(value, _MEMBERS[acknowledgement])
    others = tuple(name for name in names if name != acknowledgement and annotations.get(name) != value)
    requested = value if acknowledgement in names else ""
    return Hook(requested=requested, acknowledged=annotations.get(acknowledgement, ""), others=others)


@lru_cache(maxsize=64)
def _hook_names(value: str, member: str) -> tuple[str, ...]:
    """Return the annotations of the hooks that the drain options list; nothing for an invalid value."""
    try:
        options = json.loads(value)
        return tuple(str(hook.get("annotation")) for hook in options.get(member) or [])
    except (ValueError, AttributeError, TypeError, RecursionError):
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MachinePlan:
    """The fields of a machine-plan Secret that decisions need."""

    secret: str = ""
    uid: str = ""
    version: str = ""
    #: The value of the annotation that counts acknowledged requests.
    counted: str = ""
    machine: str = ""
    machine_problem: str = ""
    machine_ways_out: tuple[Remedy, ...] = ()
    plan_error: str = ""
    drains: bool = False
    #: True from the begin of a drain with hooks for the manager until Rancher has uncordoned the node.
    has_begun: bool = False
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
        return replace(left, drains=False, has_begun=False, under_way=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The fields of a Machine that decisions need."""

    name: str
    node: str
    problem: str
    #: The remedies for the problem.
    ways_out: tuple[Remedy, ...]
    plan_error: str

    @classmethod
    def of(cls, machine: Object) -> Machine:
        """Read the object."""
        applied, problem = objects.condition(machine, "PlanApplied"), deletion(machine)
        is_refused = objects.text(applied, "status") == "False"
        return cls(
            name=objects.name(machine),
            node=node_of_machine(machine),
            problem=problem,
            ways_out=ways_out(MACHINES, machine) if problem else (),
            plan_error=condition_words(applied) or "PlanApplied is False" if is_refused else "",
        )

    def explain(self, plan: MachinePlan) -> MachinePlan:
        """Return the Machine's Secret with the Machine's problems."""
        return replace(plan, machine_problem=self.problem, machine_ways_out=self.ways_out, plan_error=self.plan_error)


NO_MACHINE_PLAN = MachinePlan()


def machine_plans(node: str, secrets: Store, machines: Store) -> list[MachinePlan]:
    """Return the Secrets of the node's Machines, in their order; a Secret without a Machine is of no node."""
    result = []
    for where in machines.keys_by(node_of_machine, node):
        machine = machines.derive_one(Machine.of, where)
        plans = [secrets.derive_one(_read_secret, one) for one in secrets.keys_by(machine_of, machine.name)]
        result += [machine.explain(plan) if machine.problem or machine.plan_error else plan for plan in plans]
    return sorted(result, key=attrgetter("secret"))


def counting(plans: Sequence[MachinePlan], machine: Machine | None, *, node: str) -> MachinePlan:
    """Return the Secret of the Machine that the Node names.

    While the Node names none of several Machines, or one whose Secret does not exist, another one is returned, with a
    pending hook if there is one, and its node is not drained.
    """
    named = next((one for one in plans if machine is not None and one.machine == machine.name), None)
    if named is not None or not plans:
        return named or NO_MACHINE_PLAN
    first = next((one for one in plans if one.pending), plans[0])
    if machine is not None and machine.node == node:
        problem = (
            f"the Node's annotation {ANNOTATION_MACHINE} names {machine.name}, whose machine-plan Secret is missing"
        )
        return replace(first, machine_problem=problem, machine_ways_out=(_LIST_MACHINES,))
    if len(plans) == 1:
        return first
    others = name_list(sorted(one.machine for one in plans if one is not first))
    problem = f"it names the same node as {others}, and the Node's annotation {ANNOTATION_MACHINE} names neither"
    ways_out = (_LIST_MACHINES, *(_name_machine(node, one.machine) for one in plans[:_CHOICES]))
    return replace(first, machine_problem=problem, machine_ways_out=ways_out)


def _read_secret(secret: Object) -> MachinePlan:
    return MachinePlan(
        secret=objects.name(secret),
        uid=objects.uid(secret),
        version=objects.resource_version(secret),
        counted=objects.annotations_of(secret).get(ANNOTATION_ACKNOWLEDGED, ""),
        machine=machine_of(secret),
        drains=any(key in objects.annotations_of(secret) for key in (RKE_DRAIN_OPTIONS, RKE_PRE_DRAIN, RKE_POST_DRAIN)),
        has_begun=is_draining(secret),
        under_way=is_under_way(secret),
        drain_error=objects.excerpt(secret, "metadata", "annotations", RKE_DRAIN_ERROR),
        pre_drain=pre_drain_hook(secret),
        post_drain=post_drain_hook(secret),
        tier=tier_of(secret),
    )


def _name_machine(node: str, machine: str) -> Remedy:
    return Remedy(f"If its Machine is {machine}, name it on the Node", command=_annotate(node, machine))


def correct_annotation(node: str, machines: Sequence[str]) -> tuple[Remedy, ...]:
    """Return how the Node names its Machine; of several Machines, or without one, the user chooses."""
    if len(machines) == 1:
        return (Remedy("Correct its annotation", command=_annotate(node, machines[0])),)
    edit = Remedy(
        f"Set annotation {ANNOTATION_MACHINE} to the name of its Machine", command=f"kubectl edit node {node}"
    )
    return _LIST_MACHINES, edit


def _annotate(node: str, machine: str) -> str:
    return f"kubectl annotate --overwrite node {node} {ANNOTATION_MACHINE}={machine}"


def is_running(machine: Object) -> bool:
    """Return True for a Machine of Cluster API that runs; else its node joins or leaves."""
    return objects.text(machine, "status", "phase") == "Running" and not objects.is_deleting(machine)
