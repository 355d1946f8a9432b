"""The nodes on which Longhorn runs: Harvester's, without witnesses.

system_services.py and instance_managers.py wait for what runs on each of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import MANAGED_SELECTOR, WITNESS_LABEL
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import NODES

if TYPE_CHECKING:
    from upgrade_manager.kube.client import Client

#: The label by which a user keeps Longhorn's second data engine off a node (docs.harvesterhci.io, Longhorn V2).
DISABLES_V2 = "node.longhorn.io/disable-v2-data-engine"


async def names_of_nodes(client: Client, *, without: str = "") -> list[str]:
    """Return the nodes' names, sorted, without nodes on which this label is true."""
    found = await client.list(NODES, label_selector=MANAGED_SELECTOR, metadata_only=True)
    left_out = {WITNESS_LABEL, without}
    return sorted(
        objects.name(node)
        for node in found.items
        if not any(objects.labels(node).get(label) == "true" for label in left_out)
    )
