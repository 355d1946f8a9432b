"""Logs anomalies of nodes, Machines and Secrets that do not affect the upgrade, each once.

The phase (pipeline/node_upgrade/phase.py) calls it when one of these objects changes.

Anomalies are a Secret without a Machine, a Machine without a node, two Secrets for one node, a hook of an earlier
upgrade or of another controller, and a node that joins or leaves.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import structlog

from upgrade_manager.api.keys import RKE_POST_DRAIN, RKE_PRE_DRAIN
from upgrade_manager.facts import machine_plan
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.store import Store
    from upgrade_manager.nodes.node_view import Observed

log = structlog.get_logger(__name__)


class AnomalyLog:
    """Logs anomalies of one plan at a time, each when it appears."""

    def __init__(self) -> None:
        self._plan_uid = ""
        self._inputs: tuple[object, ...] = ()
        self._logged: frozenset[tuple[str, str]] = frozenset()

    def record(
        self, observed: Observed, *, plan_uid: str, nodes: frozenset[str], single: bool, stale: frozenset[str]
    ) -> None:
        """Log new anomalies. `nodes` take part in the upgrade; `stale` Secrets have a hook of an earlier upgrade."""
        if plan_uid != self._plan_uid:
            self._plan_uid, self._inputs, self._logged = plan_uid, (), frozenset()
        derived = (observed.secrets.derive(_summary), observed.machines.derive(_node_of))
        inputs = (*derived, observed.nodes.derive(objects.name), nodes, single, stale)
        if inputs == self._inputs:
            # Most changes of a thousand nodes are no anomalies.
            return
        self._inputs = inputs
        found = frozenset(
            [
                *_secrets(observed.secrets, observed.machines),
                # Rancher does not upgrade a single node, so that every hook belongs to an earlier upgrade.
                *_hooks(observed.secrets, stale=None if single else stale),
                *_nodes(observed.nodes, nodes),
            ]
        )
        for event, name in sorted(found - self._logged):
            log.warning(event, name=name)
        self._logged = found


def _secrets(secrets: Store, machines: Store) -> list[tuple[str, str]]:
    nodes = dict(machines.derive(_node_of))
    found, owners = [], Counter[str]()
    for name, machine, pending, _ in secrets.derive(_summary):
        if nodes.get(machine):
            owners[nodes[machine]] += 1
        elif pending:
            missing = "whose Machine has no node" if machine in nodes else "without a Machine"
            found.append((f"pending hook on a machine-plan Secret {missing}", name))
    return found + [("several machine-plan Secrets for one node", node) for node, count in owners.items() if count > 1]


def _hooks(secrets: Store, *, stale: frozenset[str] | None) -> list[tuple[str, str]]:
    found = []
    for name, _, pending, foreign in secrets.derive(_summary):
        if pending and (stale is None or name in stale):
            found.append(("pending hook of an earlier upgrade on a machine-plan Secret", name))
        if foreign:
            found.append(("hook of another controller on a machine-plan Secret", name))
    return found


def _nodes(nodes: Store, recorded: frozenset[str]) -> list[tuple[str, str]]:
    present = set(nodes.derive(objects.name))
    joined = [("node joined during the node upgrade", name) for name in present - recorded]
    return joined + [("node left during the node upgrade", name) for name in recorded - present]


def _node_of(machine: Object) -> tuple[str, str]:
    return objects.name(machine), machine_plan.node_of_machine(machine)


def _summary(secret: Object) -> tuple[str, str, bool, bool]:
    """Return name and Machine, then True for a pending hook, and True for another controller's hook."""
    pre, post = machine_plan.pre_drain_hook(secret), machine_plan.post_drain_hook(secret)
    requested = {RKE_PRE_DRAIN: pre.requested, RKE_POST_DRAIN: post.requested}
    present = objects.annotations_of(secret)
    foreign = any(key in present and not value for key, value in requested.items())
    return objects.name(secret), machine_plan.machine_of(secret), machine_plan.is_pending(secret), foreign
