"""Harvester's Setting overcommit-config, whose default v1.8 changes.

The command cluster_upgrade pins the default of v1.7 before anything starts v1.8.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import SETTING_SERVER_VERSION
from upgrade_manager.facts import versions
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import SETTINGS
from upgrade_manager.release.migrations.pair import minor_of
from upgrade_manager.release.migrations.v1_7_to_v1_8 import NEWER

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.toolkit.run.context import ToolkitContext

_OVERCOMMIT = "overcommit-config"


async def overcommit_not_pinned(context: ToolkitContext) -> str:
    """Return that the Setting follows a default which the upgrade changes."""
    setting = await _not_pinned(context)
    return f"Setting {_OVERCOMMIT} has no value, and its default is about to change" if setting is not None else ""


async def pin_overcommit(context: ToolkitContext) -> None:
    """Make the default the value. Raises Conflict if another client writes the Setting meanwhile."""
    setting = await _not_pinned(context)
    if setting is not None:
        patch = MergePatch({"value": objects.text(setting, "default")}).at(objects.resource_version(setting))
        await context.client.patch(SETTINGS, _OVERCOMMIT, patch)


async def _not_pinned(context: ToolkitContext) -> Object | None:
    """Return the Setting if its default counts and is that of the older release."""
    setting = await context.client.find(SETTINGS, _OVERCOMMIT)
    if objects.text(setting, "value") or not objects.text(setting, "default"):
        return None
    running = minor_of(versions.running(await context.client.get(SETTINGS, SETTING_SERVER_VERSION)))
    return setting if running is not None and running < NEWER else None
