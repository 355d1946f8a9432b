"""Deletion of a Pod with a grace period, for the kubelets and for Rancher's drain."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import PODS
from upgrade_manager.kube.transport import Request

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.transport import Transport

#: Responses after which nothing is left to do: accepted, not found, or another Pod has the name.
_REMOVED = {200, 202, 404, 409}


async def delete_pod(transport: Transport, pod: Object, *, user_agent: str, grace: int | None) -> bool:
    """Delete the Pod, with its own grace period if `grace` is None, and report whether the API server did."""
    options: Object = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": objects.uid(pod)}}
    if grace is not None:
        options["gracePeriodSeconds"] = grace
    request = Request(
        method="DELETE",
        path=PODS.path(objects.name(pod), namespace=objects.namespace(pod)),
        headers={"accept": "application/json", "content-type": "application/json", "user-agent": user_agent},
        body=json.dumps(options).encode(),
    )
    return (await transport.send(request)).status in _REMOVED
