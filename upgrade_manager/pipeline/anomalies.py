"""What is strange about nodes, Machines and Secrets and stops nobody: it is logged, once.

A Secret without a Machine, a Machine without a node, two Secrets for one node, a question of an earlier upgrade or of
somebody else's, a node that joins or leaves meanwhile.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import structlog

from upgrade_manager.api.keys import RKE_POST_DRAIN, RKE_PRE_DRAIN
from upgrade_manager.kube import objects
from upgrade_manager.nodes import machine_plan

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.store import Store
    from upgrade_manager.pipeline.node_view import Observed
    from upgrade_manager.pipeline.status import StatusPatch

log = structlog.get_logger(__name__)


class Oddities:
    """Remembers what has been said, so that a look at the same things says nothing."""

    def __init__(self) -> None:
        self._plan = ""
        self._said: frozenset[tuple[str, str]] = frozenset()

    def tell(self, status: StatusPatch, observed: Observed, *, plan: str, left_over: frozenset[str]) -> None:
        """Log what is new in the upgrade of that plan, which is named by its uid.

        `left_over` are the Secrets that had a question before Rancher was asked for anything.
        """
        if plan != self._plan:
            self._plan, self._said = plan, frozenset()
        # On an only node Rancher is asked for nothing, so whatever it asks is old.
        asked = _asked_by_others(observed.secrets, left_over=None if status["singleNode"] else left_over)
        odd = [*_secrets(observed.secrets, observed.machines), *asked, *_nodes(status, observed.nodes)]
        seen = frozenset(odd)
        for what, name in sorted(seen - self._said):
            log.warning(what, name=name)
        self._said = seen


def _secrets(secrets: Store, machines: Store) -> list[tuple[str, str]]:
    nodes = dict(machines.derive(_node_of))
    found, owners = [], Counter[str]()
    for name, machine, asks, _ in secrets.derive(_asked):
        if machine not in nodes:
            found += [("question in a machine-plan Secret without a Machine", name)] if asks else []
        elif not nodes[machine]:
            found += [("question in a machine-plan Secret whose Machine has no node", name)] if asks else []
        else:
            owners[nodes[machine]] += 1
    return found + [("several machine-plan Secrets for one node", node) for node, count in owners.items() if count > 1]


def _asked_by_others(secrets: Store, *, left_over: frozenset[str] | None) -> list[tuple[str, str]]:
    """Questions that are not this upgrade's; None stands for all Secrets."""
    found = []
    for name, _, asks, is_others in secrets.derive(_asked):
        if asks and (left_over is None or name in left_over):
            found.append(("question of an earlier upgrade in a machine-plan Secret", name))
        if is_others:
            found.append(("question in a machine-plan Secret that is not put to us", name))
    return found


def _nodes(status: StatusPatch, nodes: Store) -> list[tuple[str, str]]:
    present, known = set(nodes.derive(objects.name)), status.known_nodes()
    joined = [("node has joined since the node upgrade began", name) for name in present - known]
    return joined + [("node has left since the node upgrade began", name) for name in known - present]


def _node_of(machine: Object) -> tuple[str, str]:
    return objects.name(machine), machine_plan.node_of_machine(machine)


def _asked(secret: Object) -> tuple[str, str, bool, bool]:
    """Name, Machine, whether we are asked and have not answered, whether somebody else is asked."""
    first, second = machine_plan.pre_drain(secret), machine_plan.post_drain(secret)
    asked = {RKE_PRE_DRAIN: first.asked, RKE_POST_DRAIN: second.asked}
    present = objects.annotations_of(secret)
    is_others = any(key in present and not ours for key, ours in asked.items())
    return objects.name(secret), machine_plan.machine_of(secret), first.open or second.open, is_others
