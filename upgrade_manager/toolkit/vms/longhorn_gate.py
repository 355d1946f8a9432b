"""Waits until the volumes of running VMs survive the loss of the node that is about to be drained.

The command pre_drain waits by this gate. facts/volumes.py has the rule; blockers/volumes.py reports volumes that take
too long.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import LONGHORN_SYSTEM, MANAGED_SELECTOR
from upgrade_manager.api.remedy import remedy_text
from upgrade_manager.api.text import name_list
from upgrade_manager.facts.volumes import (
    SKIP_PREFIX,
    claim_of,
    skip_file,
    slim_engine,
    slim_volume,
    storage_nodes,
    volumes_at_risk,
    way_to_skip,
    ways_out,
)
from upgrade_manager.kube import objects
from upgrade_manager.kube.pager import Selection, list_all_pages
from upgrade_manager.kube.resources import LONGHORN_ENGINES, LONGHORN_VOLUMES, NODES
from upgrade_manager.toolkit.host.host_paths import WORK

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.resources import Resource
    from upgrade_manager.toolkit.run.context import ToolkitContext


async def unsafe_volumes(context: ToolkitContext) -> str:
    """Return the volumes of running engines that lack replicas, without volumes that users skip."""
    nodes = (await context.client.list(NODES, label_selector=MANAGED_SELECTOR, metadata_only=True)).items
    engines, volumes = [
        await _read(context, resource, slim)
        for resource, slim in ((LONGHORN_ENGINES, slim_engine), (LONGHORN_VOLUMES, slim_volume))
    ]
    count = storage_nodes(nodes)
    found = {
        f"{claim_of(volume) or 'without a claim'} (volume {objects.name(volume)}: {problem})": volume
        for volume, problem in volumes_at_risk(volumes, engines, nodes=count)
        if not context.tree.exists(skip_file(volume))
    }
    if not found:
        return ""
    first = found[min(found)]
    remedy = remedy_text([*ways_out(first, nodes=count), way_to_skip(first, context.node)])
    return f"{len(found)} volumes: {name_list(sorted(found))}. For the first one: {remedy}"


async def forget_skipped_volumes(context: ToolkitContext) -> None:
    """Remove the files that skip volumes, so that they do not count in the next drain."""
    for name in context.tree.names(WORK):
        if name.startswith(SKIP_PREFIX):
            context.tree.remove(f"{WORK}/{name}")


async def _read(context: ToolkitContext, resource: Resource, slim: Callable[[Object], Object]) -> Sequence[Object]:
    """Return all objects with few fields, because a large cluster has ten thousand objects."""
    selection = Selection(resource=resource, namespace=LONGHORN_SYSTEM)
    return (
        await list_all_pages(partial(context.client.list_page, selection, transform=slim), resource_version="")
    ).items
