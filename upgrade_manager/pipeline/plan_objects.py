"""Creates and removes the objects of a plan; `ReconcileContext` and ending/leftovers.py call it.

A ValidatingAdmissionPolicy (deploy/admission-policies/manager-active-plan.yaml) compares each object with the plan. The
API server's copy of the plan trails the manager's last write of the plan by milliseconds.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

import structlog

from upgrade_manager.api.keys import CATTLE_SYSTEM, FLEET_LOCAL, LONGHORN_SYSTEM, PROVISIONING_CLUSTER
from upgrade_manager.kube import objects
from upgrade_manager.kube.clock import loop_time
from upgrade_manager.kube.errors import Conflict, Forbidden, Invalid, NotFound, policy_refusal
from upgrade_manager.kube.resources import NAMESPACES, PROVISIONING_CLUSTERS
from upgrade_manager.pipeline import write_log

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.resources import Resource

#: Seconds after which an older copy of the plan cannot be the reason for a refusal.
COPY_TIMEOUT = 5.0
#: Seconds until the first repetition; each further pause is twice as long.
_FIRST_PAUSE = 0.05
#: Namespaces that may not exist, unlike kube-system and the manager's own.
_OPTIONAL_NAMESPACES = frozenset({CATTLE_SYSTEM, FLEET_LOCAL, LONGHORN_SYSTEM})
T = TypeVar("T")
log = structlog.get_logger(__name__)


async def create(client: Client, resource: Resource, manifest: Object) -> Object:
    """Create the object, and return it. Raises KubeError; a refusal by the policy is raised after COPY_TIMEOUT.

    The policy of the active plan refuses with Invalid; the manager's other policies refuse with Forbidden, which is not
    repeated.
    """
    deadline, pause = loop_time() + COPY_TIMEOUT, _FIRST_PAUSE
    while True:
        try:
            return await client.create(resource, manifest, namespace=objects.namespace(manifest))
        except Invalid as error:
            left = deadline - loop_time()
            if not policy_refusal(error) or left <= 0:
                raise
        log.debug("refused by a policy, created again", kind=resource.kind, object=objects.name(manifest))
        await asyncio.sleep(min(pause, left))
        pause *= 2


async def version(client: Client, resource: Resource, name: str, *, namespace: str = "") -> str:
    """Return the object's resourceVersion on the API server; empty if the object does not exist.

    The object is listed, because the manager may not get every kind by name.
    """
    selector = f"metadata.name={name}"
    listed = await client.list(resource, namespace=namespace, field_selector=selector, metadata_only=True)
    return next(map(objects.resource_version, listed.items), "")


async def remove(client: Client, resource: Resource, name: str, *, namespace: str, uid: str) -> None:
    """Delete the object of that uid, if it still exists; a user may have created another object of that name.

    Raises Conflict for the refusal of a webhook.
    """
    try:
        await client.delete(resource, name, namespace=namespace, uid=uid)
    except NotFound:
        log.info("object not found, not removed", kind=resource.kind, object=name)
    except Conflict:
        now = await client.find(resource, name, namespace=namespace, metadata_only=True)
        if now is not None and objects.uid(now) == uid:
            # A webhook has refused the deletion.
            raise
        log.info("object was replaced, not removed", kind=resource.kind, object=name)
    else:
        write_log.removed(resource, name, namespace=namespace)


async def skip_missing(client: Client, namespace: str, step: Coroutine[Any, Any, T]) -> T | None:
    """Run a step and return its result; None if its object, its kind or the namespace does not exist.

    The manager's Role is deleted with its namespace, so that requests there are Forbidden.
    """
    try:
        return await step
    except NotFound as error:
        log.info("not found, skipping clean-up", namespace=namespace, error=str(error))
    except Forbidden:
        if namespace not in _OPTIONAL_NAMESPACES or await _exists(client, namespace):
            raise
        log.info("namespace not found, skipping clean-up", namespace=namespace)
    return None


async def find_cluster(client: Client, *, metadata_only: bool = False) -> Object | None:
    """Return Rancher's provisioning cluster; None if it, its kind or its namespace does not exist."""
    find = client.find(PROVISIONING_CLUSTERS, PROVISIONING_CLUSTER, namespace=FLEET_LOCAL, metadata_only=metadata_only)
    return await skip_missing(client, FLEET_LOCAL, find)


async def _exists(client: Client, namespace: str) -> bool:
    found = await client.find(NAMESPACES, namespace, metadata_only=True)
    return found is not None and not objects.is_deleting(found)
