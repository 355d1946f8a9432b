"""Rancher's Setting of the Services whose addresses its internal certificate may name.

The command cluster_upgrade writes it before Rancher 2.15 starts, which reads it once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import AlreadyExists, Conflict
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.release.migrations.v1_8_to_v1_9 import INTERNAL_SERVICES, INTERNAL_SERVICES_SETTING
from upgrade_manager.toolkit.charts.cluster_resources import RANCHER_SETTINGS

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.toolkit.run.context import ToolkitContext


async def services_not_named(context: ToolkitContext) -> str:
    """Return the Services that the Setting lacks."""
    lacking = _lacking(await context.client.find(RANCHER_SETTINGS, INTERNAL_SERVICES_SETTING))
    return f"Rancher's Setting {INTERNAL_SERVICES_SETTING} lacks {', '.join(lacking)}" if lacking else ""


async def name_services(context: ToolkitContext) -> None:
    """Add the Services; others stay. Raises Conflict if another client writes the Setting meanwhile."""
    setting = await context.client.find(RANCHER_SETTINGS, INTERNAL_SERVICES_SETTING)
    value = ",".join((*_named(setting), *_lacking(setting)))
    if setting is not None:
        patch = MergePatch({"value": value}).at(objects.resource_version(setting))
        await context.client.patch(RANCHER_SETTINGS, INTERNAL_SERVICES_SETTING, patch)
        return
    # Rancher 2.14 knows no such Setting; Rancher 2.15 fills in the rest.
    body: Object = {"metadata": {"name": INTERNAL_SERVICES_SETTING}, "value": value}
    body |= {"default": "", "source": "", "customized": False}
    try:
        await context.client.create(RANCHER_SETTINGS, RANCHER_SETTINGS.with_type_meta(body))
    except AlreadyExists as error:
        raise Conflict(str(error)) from error


def _named(setting: Object | None) -> list[str]:
    """Return the Services of the value."""
    return [name.strip() for name in objects.text(setting, "value").split(",") if name.strip()]


def _lacking(setting: Object | None) -> list[str]:
    named = _named(setting)
    return [name for name in INTERNAL_SERVICES if name not in named]
