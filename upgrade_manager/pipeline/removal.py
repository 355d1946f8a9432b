"""Removes one object, of which a user may have created another of that name meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Conflict, NotFound
from upgrade_manager.pipeline import write_log

if TYPE_CHECKING:
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.resources import Resource

log = structlog.get_logger(__name__)


async def remove(client: Client, resource: Resource, name: str, *, namespace: str, uid: str) -> None:
    """Delete the object of that uid, if it still exists. Raises Conflict for the refusal of a webhook."""
    try:
        await client.delete(resource, name, namespace=namespace, uid=uid)
    except NotFound:
        log.info("object not found, not removed", kind=resource.kind, object=name)
    except Conflict:
        now = await client.find(resource, name, namespace=namespace, metadata_only=True)
        if now is not None and objects.uid(now) == uid:
            # A webhook's.
            raise
        log.info("object was replaced, not removed", kind=resource.kind, object=name)
    else:
        write_log.removed(resource, name, namespace=namespace)
