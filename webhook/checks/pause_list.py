"""Every name in the pause list is a node of the upgrade.

facts/pairing.py has the rule, by which the manager ignores unknown names (pipeline/node_upgrade/managed_nodes.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import MANAGED_SELECTOR, is_managed, manage_command
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
    """Return a finding for each name, by its index in the list, that is not a node of the upgrade."""
    if not names:
        return []
    found = await subject.cluster.list(NODES)
    nodes = {objects.name(node): is_managed(objects.mapping(node, "metadata", "labels")) for node in found}
    managed = [name for name, is_member in nodes.items() if is_member]
    if {*names.values()} <= {*managed}:
        return []
    (machines,) = await read_each(subject.cluster, MACHINES)
    known = [] if isinstance(machines, NotInstalled) else machines
    unknown = {*unknown_nodes(names.values(), managed=managed, machines=known)}
    return [
        Finding(message=_problem(name, exists=name in nodes), field=f"{FIELD}[{index}]")
        for index, name in names.items()
        if name in unknown
    ]


def _problem(name: str, *, exists: bool) -> str:
    if exists:
        return f"Node {name} lacks the label {MANAGED_SELECTOR}. Add it: {manage_command(name)}"
    return f"Node {name} does not exist. Correct the name, or remove it"


async def _find(subject: Subject) -> list[Finding]:
    return await find_unknown(subject, dict(enumerate(subject.spec.node_upgrade_option.pause_nodes)))


CHECK = Check(name="pause list", field=FIELD, find=_find)
