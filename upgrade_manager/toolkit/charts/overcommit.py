"""Harvester's Setting overcommit-config, whose default v1.8 changes.

The command cluster_upgrade pins the default of v1.7 before anything starts v1.8, and gives the pin up if it ends before
that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import PREFIX, SETTING_SERVER_VERSION
from upgrade_manager.facts import versions
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import SETTINGS
from upgrade_manager.release.migrations.pair import minor_of
from upgrade_manager.release.migrations.v1_7_to_v1_8 import NEWER
from upgrade_manager.toolkit.charts.managed_charts import upgrade_has_begun

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.toolkit.run.context import ToolkitContext

_OVERCOMMIT = "overcommit-config"
#: The value that this command has set.
ANNOTATION_PINNED = f"{PREFIX}/pinned-value"


async def overcommit_not_pinned(context: ToolkitContext) -> str:
    """Return that the Setting follows a default which the upgrade changes."""
    setting = await _not_pinned(context)
    return f"Setting {_OVERCOMMIT} has no value, and its default is about to change" if setting is not None else ""


async def pin_overcommit(context: ToolkitContext) -> None:
    """Make the default the value, and record that. Raises Conflict if another client writes the Setting meanwhile."""
    setting = await _not_pinned(context)
    if setting is not None:
        await _write(context, setting, value=objects.text(setting, "default"), record=objects.text(setting, "default"))


async def pin_recorded(context: ToolkitContext) -> str:
    """Return that the record of the pin still exists."""
    setting = await context.client.find(SETTINGS, _OVERCOMMIT)
    return f"Setting {_OVERCOMMIT} has the annotation {ANNOTATION_PINNED}" if _record_of(setting) is not None else ""


async def settle_pin(context: ToolkitContext) -> None:
    """Remove the record; clear the value, too, if it is still the pin and Harvester's upgrade has not begun.

    Without the pin, a later default of the present release counts again; the next attempt pins it again.
    """
    setting = await context.client.find(SETTINGS, _OVERCOMMIT)
    record = _record_of(setting)
    if setting is None or record is None:
        return
    has_begun = await upgrade_has_begun(context)
    value = None if has_begun or objects.text(setting, "value") != record else ""
    await _write(context, setting, value=value, record=None)


async def _write(context: ToolkitContext, setting: Object, *, value: str | None, record: str | None) -> None:
    body = {"metadata": {"annotations": {ANNOTATION_PINNED: record}}, **({} if value is None else {"value": value})}
    patch = MergePatch(body).at(objects.resource_version(setting))
    await context.client.patch(SETTINGS, _OVERCOMMIT, patch)


def _record_of(setting: Object | None) -> str | None:
    return objects.annotations_of(setting).get(ANNOTATION_PINNED) if setting is not None else None


async def _not_pinned(context: ToolkitContext) -> Object | None:
    """Return the Setting if its default counts and is that of the older release."""
    setting = await context.client.find(SETTINGS, _OVERCOMMIT)
    if objects.text(setting, "value") or not objects.text(setting, "default"):
        return None
    running = minor_of(versions.running(await context.client.get(SETTINGS, SETTING_SERVER_VERSION)))
    return setting if running is not None and running < NEWER else None
