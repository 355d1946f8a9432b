"""The webhook configurations of the Cluster API that Rancher 2.13 embeds, which Rancher 2.14 leaves behind.

The command cluster_upgrade deletes them right before Rancher is upgraded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import NotFound
from upgrade_manager.kube.resources import MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS
from upgrade_manager.release.migrations.v1_7_to_v1_8 import CAPI_MUTATING, CAPI_NAMESPACE, CAPI_VALIDATING

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.resources import Resource
    from upgrade_manager.toolkit.run.context import ToolkitContext

_NAMES = (
    (MUTATING_WEBHOOK_CONFIGURATIONS, CAPI_MUTATING),
    (VALIDATING_WEBHOOK_CONFIGURATIONS, CAPI_VALIDATING),
)


async def webhooks_left(context: ToolkitContext) -> str:
    """Return the configurations of Rancher's embedded Cluster API."""
    names = [f"{resource.kind} {objects.name(found)}" for resource, found in await _left(context)]
    return f"{', '.join(names)}: the Service in {CAPI_NAMESPACE} is about to be removed" if names else ""


async def remove_webhooks(context: ToolkitContext) -> None:
    """Delete them. Raises Conflict for one that was created again meanwhile."""
    for resource, found in await _left(context):
        try:
            await context.client.delete(resource, objects.name(found), uid=objects.uid(found))
        except NotFound:
            continue


async def _left(context: ToolkitContext) -> list[tuple[Resource, Object]]:
    """Return the configurations; those of other software may have the same names."""
    read = [(resource, await context.client.find(resource, name)) for resource, name in _NAMES]
    return [(resource, found) for resource, found in read if found is not None and _is_embedded(found)]


def _is_embedded(configuration: Object) -> bool:
    """Return True if each webhook calls a Service in the namespace of Rancher's Cluster API."""
    webhooks = objects.items(configuration, "webhooks")
    places = {objects.text(webhook, "clientConfig", "service", "namespace") for webhook in webhooks}
    return places == {CAPI_NAMESPACE}
