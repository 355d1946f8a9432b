"""Every name in the pause list is a node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.kube import objects
from webhook.check import Check, Finding
from webhook.listings import NODES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.check import Subject

FIELD = "spec.nodeUpgradeOption.pauseNodes"


async def find_unknown(subject: Subject, names: Mapping[int, str]) -> list[Finding]:
    """Return a finding for each name, by its index in the list, that is not a node."""
    if not names:
        return []
    nodes = {objects.name(node) for node in await subject.cluster.list(NODES)}
    return [
        Finding(message=f"Node {name} does not exist. Correct the name, or remove it", field=f"{FIELD}[{index}]")
        for index, name in names.items()
        if name not in nodes
    ]


async def _find(subject: Subject) -> list[Finding]:
    return await find_unknown(subject, dict(enumerate(subject.spec.node_upgrade_option.pause_nodes)))


CHECK = Check(name="pause list", field=FIELD, find=_find)
