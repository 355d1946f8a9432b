"""Creates the objects of a plan; `ReconcileContext.ensure` calls it.

A ValidatingAdmissionPolicy (deploy/admission-policies/manager-active-plan.yaml) compares each of them with the plan, of
which the API server keeps a copy that trails the manager's last write of it by milliseconds.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from upgrade_manager.kube import objects
from upgrade_manager.kube.clock import loop_time
from upgrade_manager.kube.errors import Invalid, policy_refusal

if TYPE_CHECKING:
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.resources import Resource

#: Seconds after which the refusal is not that of an older copy.
COPY_TIMEOUT = 5.0
#: Seconds until the first repetition; each next one takes twice as long.
_FIRST_PAUSE = 0.05
log = structlog.get_logger(__name__)


async def create(client: Client, resource: Resource, manifest: Object) -> Object:
    """Create the object, and return it. Raises KubeError, for the refusal of a policy after COPY_TIMEOUT.

    That policy refuses as Invalid, other policies of the manager as Forbidden, which is not repeated.
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
