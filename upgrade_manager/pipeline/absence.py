from __future__ import annotations

from typing import TYPE_CHECKING, Any

import structlog

from upgrade_manager.api.keys import CATTLE_SYSTEM, FLEET_LOCAL, LONGHORN_SYSTEM
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Forbidden, NotFound
from upgrade_manager.kube.resources import NAMESPACES

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from upgrade_manager.pipeline.context import ReconcileContext

#: Those that can be missed; kube-system is always there, and in harvester-system we are ourselves.
DISPENSABLE = frozenset({CATTLE_SYSTEM, FLEET_LOCAL, LONGHORN_SYSTEM})
log = structlog.get_logger(__name__)


async def where_present(ctx: ReconcileContext, namespace: str, step: Coroutine[Any, Any, Any]) -> None:
    """Take a step of a clean-up in a namespace; where its object, its kind or the namespace is gone, there is none.

    Our rights in a namespace are part of it, so that one that is gone, or about to go, answers that we may not.
    """
    try:
        await step
    except NotFound as error:
        log.info("gone, so not cleaned up", namespace=namespace, error=str(error))
    except Forbidden:
        if namespace not in DISPENSABLE or await _is_there(ctx, namespace):
            raise
        log.info("namespace gone, so not cleaned up", namespace=namespace)


async def _is_there(ctx: ReconcileContext, namespace: str) -> bool:
    found = await ctx.find(NAMESPACES, namespace, metadata_only=True)
    return found is not None and not objects.is_deleting(found)
