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


async def names_of_nodes(client: Client) -> list[str]:
    """Return the nodes' names, sorted."""
    found = await client.list(NODES, label_selector=MANAGED_SELECTOR, metadata_only=True)
    return sorted(objects.name(node) for node in found.items if objects.labels(node).get(WITNESS_LABEL) != "true")
