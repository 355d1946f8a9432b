"""Every name in the pause list is a node.

facts/pairing.py has the rule, by which the manager ignores unknown names (pipeline/node_upgrade/managed_nodes.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api import node_states
from upgrade_manager.facts.pairing import unknown_nodes
from upgrade_manager.kube import objects
from webhook.check import Check, Finding
from webhook.cluster import NotInstalled
from webhook.listings import MACHINES, NODES, read_each

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.check import Subject

FIELD = "spec.nodeUpgradeOption.pauseNodes"


async def find_unknown(subject: Subject, names: Mapping[int, str]) -> list[Finding]:
    """Return a finding for each name, by its index in the list, that is not a node."""
    if not names:
        return []
    nodes = {objects.name(node) for node in await subject.cluster.list(NODES)}
    if nodes.issuperset(names.values()):
        return []
    (machines,) = await read_each(subject.cluster, MACHINES)
    known = [] if isinstance(machines, NotInstalled) else machines
    unknown = unknown_nodes(names.values(), nodes=nodes, machines=known)
    return [
        Finding(problem=f"Node {name} does not exist. Correct the name, or remove it", field=f"{FIELD}[{index}]")
        for index, name in names.items()
        if name in unknown
    ]


def late_pauses(plan: object, names: Mapping[int, str]) -> list[Finding]:
    """Return a warning for each name whose node's upgrade has started by the plan's status."""
    late = node_states.late_pauses(objects.mapping(plan, "status"), names.values())
    return [
        Finding(problem=late[name], field=f"{FIELD}[{index}]", denies=False)
        for index, name in names.items()
        if name in late
    ]


async def _find(subject: Subject) -> list[Finding]:
    return await find_unknown(subject, dict(enumerate(subject.spec.node_upgrade_option.pause_nodes)))


CHECK = Check(name="pause list", field=FIELD, find=_find)
