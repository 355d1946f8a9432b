"""Delays of the phase's end when every node is done: Rancher's hooks that are still set, and cordoned nodes.

Rancher sets drain-options when it begins to drain a node, and removes them last, after it has uncordoned the node.
Rancher uncordons a node after its post-drain hook was acknowledged, then removes the hook. A hook that the manager does
not acknowledge stays until a user acknowledges the hook. A node that is cordoned without a hook stays cordoned until a
user uncordons the node. The message therefore names such hooks and nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from operator import itemgetter
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import (
    ANNOTATION_MACHINE,
    FLEET_LOCAL,
    RKE_DRAIN_OPTIONS,
    RKE_POST_DRAIN,
    RKE_PRE_DRAIN,
)
from upgrade_manager.api.remedy import Remedy
from upgrade_manager.facts import machine_plan, node_obstacles
from upgrade_manager.facts.drain_hooks import leftover_hook
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from upgrade_manager.facts.missing_nodes import MissingNode
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.store import Store
    from upgrade_manager.nodes.node_view import Observed


class DelayKind(Enum):
    """The kinds of delays."""

    #: Rancher uncordons the node.
    RANCHER = "Rancher"
    #: Rancher drains the node, and has no hook for the manager on it.
    DRAIN = "drain"
    #: Other controllers acknowledge their hooks.
    FOREIGN = "foreign"
    #: A user acknowledges a hook that neither Rancher nor the manager processes.
    LEFTOVER = "leftover"
    #: A user uncordons the node.
    CORDON = "cordon"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """A hook or a cordoned node that delays the end of the phase."""

    kind: DelayKind
    node: str
    #: The machine-plan Secret; empty for a cordoned node.
    secret: str = ""
    problem: str
    #: The remedy; None if the delay passes by itself.
    remedy: Remedy | None = None
    #: Annotations of other controllers' hooks that are not acknowledged.
    hooks: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.kind is DelayKind.CORDON:
            return f"{self.node}: {self.problem}. {self.remedy}"
        return f"{self.node}: {self.problem}" + (f" (acknowledge it: {self.remedy.command})" if self.remedy else "")


def delays(
    observed: Observed, *, cordoned: Iterable[str], multi_node: bool, missing: Mapping[str, MissingNode]
) -> list[Delay]:
    """Return the hooks that delay the end, ordered by node, and the cordoned nodes.

    The manager acknowledges hooks of managed nodes in a `multi_node` upgrade. A Secret without a Machine or a node is
    skipped: Rancher does not process it. `missing` are the nodes with a pending hook that cannot be observed.
    """
    pairs = _by_node(observed.secrets, observed.machines)
    earlier = _of_earlier_machines(pairs, observed.nodes)
    found, drained = [], set()
    for node, secret in pairs:
        why = _unacknowledged(node, secret, missing, earlier, multi_node=multi_node)
        for key in _delaying(secret, multi_node=multi_node, acknowledges=not why):
            found.append(_delay(node, secret, key, leftover=why))
            drained.add(node)
    return found + [_cordon(node) for node in cordoned if node not in drained]


def _of_earlier_machines(pairs: Iterable[tuple[str, Object]], nodes: Store) -> frozenset[str]:
    """Return the Secrets of Machines that their Node does not name, such as one that is stuck in its deletion."""
    named = {node: objects.annotations_of(nodes.get(node) or {}).get(ANNOTATION_MACHINE, "") for node, _ in pairs}
    found = [(node, objects.name(secret), machine_plan.machine_of(secret)) for node, secret in pairs]
    sure = {node for node, _, machine in found if machine == named[node]}
    return frozenset(secret for node, secret, machine in found if node in sure and machine != named[node])


def _unacknowledged(
    node: str, secret: Object, missing: Mapping[str, MissingNode], earlier: Collection[str], *, multi_node: bool
) -> str:
    """Return why the manager does not acknowledge the Secret's hooks; empty if it does."""
    if not multi_node:
        return "is pending since an earlier upgrade"
    if node in missing:
        return f"is pending, but the node takes no part: {missing[node].why}"
    if objects.name(secret) in earlier:
        return f"is pending, but the Node names another Machine than {machine_plan.machine_of(secret)}"
    return ""


def _cordon(node: str) -> Delay:
    obstacle = node_obstacles.cordoned(node)
    return Delay(kind=DelayKind.CORDON, node=node, problem=obstacle.why, remedy=obstacle.ways_out[0])


def describe_delays(found: Sequence[Delay], *, limit: int) -> str:
    """Describe up to `limit` delays: the object, and the action that is due."""
    more = [f"{len(found) - limit} more"] if len(found) > limit else []
    return "; ".join([*map(str, found[:limit]), *more])


def _delaying(secret: Object, *, multi_node: bool, acknowledges: bool) -> list[str]:
    """Return the annotations that delay the end; an acknowledged pre-drain hook is followed by a post-drain hook."""
    annotations = objects.annotations_of(secret)
    pre_drain = machine_plan.pre_drain_hook(secret).pending and multi_node and not acknowledges
    found = [*([RKE_PRE_DRAIN] if pre_drain else []), *([RKE_POST_DRAIN] if RKE_POST_DRAIN in annotations else [])]
    return found or [RKE_DRAIN_OPTIONS] * (multi_node and RKE_DRAIN_OPTIONS in annotations)


def held_nodes(secrets: Store, machines: Store) -> list[tuple[str, str]]:
    """Return node and Secret of each hook that waits for the manager, ordered by node."""
    return [
        (node, objects.name(secret)) for node, secret in _by_node(secrets, machines) if machine_plan.is_pending(secret)
    ]


def _by_node(secrets: Store, machines: Store) -> list[tuple[str, Object]]:
    """Return the Secrets of Machines that have a node, ordered by the node's name."""
    by_name = {objects.name(machine): machine for machine in machines.list()}
    pairs = [(machine_plan.node_of(secret, by_name), secret) for secret in secrets.list()]
    return sorted(((node, secret) for node, secret in pairs if node), key=itemgetter(0))


def _delay(node: str, secret: Object, key: str, *, leftover: str) -> Delay:
    name, is_pre_drain = objects.name(secret), key == RKE_PRE_DRAIN
    if key == RKE_DRAIN_OPTIONS:
        return Delay(kind=DelayKind.DRAIN, node=node, secret=name, problem=node_obstacles.draining(name))
    hook = machine_plan.pre_drain_hook(secret) if is_pre_drain else machine_plan.post_drain_hook(secret)
    # Each reconcile acknowledges the hooks of nodes that are done before this check.
    is_answered = not hook.pending or not leftover
    if is_answered and hook.others:
        foreign = node_obstacles.foreign_hooks(name, hook.others)
        return Delay(kind=DelayKind.FOREIGN, node=node, secret=name, problem=foreign, hooks=hook.others)
    named = f"{key} of Secret {FLEET_LOCAL}/{name}"
    if is_answered:
        waits = f"{named} is acknowledged; waiting for Rancher to uncordon the node"
        return Delay(kind=DelayKind.RANCHER, node=node, secret=name, problem=waits)
    acknowledge = Remedy("Acknowledge it", command=leftover_hook(name, key))
    return Delay(kind=DelayKind.LEFTOVER, node=node, secret=name, problem=f"{named} {leftover}", remedy=acknowledge)
