"""Records what a command is about to change in the plan's ConfigMap, one key for each entry of the ledger.

vms/vm_shutdown.py and vms/evacuation.py call it before the change; pipeline/job_ledger.py copies the entries into the
plan's status, and removes the keys once they are settled. A plan that names Harvester's toolkit has no ConfigMap: the
manager records candidates then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from upgrade_manager.api.keys import HARVESTER_SYSTEM, ToolkitKind
from upgrade_manager.api.names import ledger_config_map
from upgrade_manager.api.timestamps import format_time
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import AlreadyExists, Conflict
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import CONFIG_MAPS
from upgrade_manager.resources.job_ledger import data_of, ledger_map
from upgrade_manager.resources.owner import Owner
from upgrade_manager.toolkit.run.own_plan import own_plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from upgrade_manager.api.ledger import Entry
    from upgrade_manager.toolkit.run.context import ToolkitContext

_log = structlog.get_logger(__name__)


async def record(context: ToolkitContext, entries: Sequence[Entry]) -> None:
    """Record the entries that are not recorded yet. Raises Conflict if the ConfigMap has changed meanwhile."""
    plan = await own_plan(context) if entries else None
    if plan is None or objects.text(plan, "status", "toolkitImage", "kind") != ToolkitKind.OWN:
        return
    owner = Owner(name=context.plan, uid=objects.uid(plan))
    found = await context.client.find(CONFIG_MAPS, ledger_config_map(context.plan), namespace=HARVESTER_SYSTEM)
    if found is not None and not owner.owns(found):
        # The manager removes the ConfigMap of an earlier plan of that name.
        raise Conflict(f"ConfigMap {objects.qualified_name(found)} belongs to another plan")
    try:
        if found is None:
            await context.client.create(CONFIG_MAPS, ledger_map(owner, entries))
            return
    except AlreadyExists as error:
        raise Conflict(str(error)) from error
    known = objects.mapping(found, "data")
    missing = {key: value for key, value in data_of(entries).items() if key not in known}
    if missing:
        patch = MergePatch({"data": missing}).at(objects.resource_version(found))
        name = objects.name(found)
        await context.client.patch(CONFIG_MAPS, name, patch, namespace=HARVESTER_SYSTEM, metadata_only=True)
        _log.info("recorded in the ledger", entries=sorted(missing))


def now(context: ToolkitContext) -> str:
    """Return the time of an entry that is recorded now."""
    return format_time(context.now())
