"""Empties a real API server between two tests, which takes a second; a new one would take several."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from hack.control_plane.inventory import inventory, kinds
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import KubeError, NotFound
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.transport import Request

if TYPE_CHECKING:
    from hack.control_plane.control_plane import ControlPlane
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.resources import Resource
    from upgrade_manager.kube.transport import Transport

#: What was there before the first test, by uid.
_before: WeakKeyDictionary[ControlPlane, frozenset[str]] = WeakKeyDictionary()
#: Stay: namespaces take long to go and come back with their accounts, definitions take long to be served.
_KEPT = {"Namespace", "ServiceAccount", "CustomResourceDefinition", "APIService"}
#: Where a server has something of its own. What is elsewhere before the first cluster is there, and any Node, was left
#: by a test of the API alone, perhaps held for good.
_OWN_PLACES = {"", "default", "kube-system", "kube-public", "kube-node-lease"}
_PATIENCE = 60.0
_LOOK = 0.05
_AT_ONCE = json.dumps({"gracePeriodSeconds": 0, "propagationPolicy": "Background"}).encode()


async def tidy(plane: ControlPlane, transport: Transport, client: Client) -> None:
    """Delete what tests have created, finalizers or not. Raises TimeoutError when something keeps coming back."""
    found = await inventory(client)
    if plane not in _before:
        _before[plane] = frozenset(objects.uid(obj) for obj in found if _is_its_own(obj))
    served = {(resource.api_version, resource.kind): resource for resource in await kinds(client)}
    async with asyncio.timeout(_PATIENCE):
        while left := [obj for obj in found if obj["kind"] not in _KEPT and objects.uid(obj) not in _before[plane]]:
            await asyncio.gather(
                *(_remove(served[obj["apiVersion"], obj["kind"]], obj, transport, client) for obj in left)
            )
            await asyncio.sleep(_LOOK)
            found = await inventory(client)


def _is_its_own(obj: Object) -> bool:
    return objects.namespace(obj) in _OWN_PLACES and obj["kind"] != "Node"


async def _remove(resource: Resource, obj: Object, transport: Transport, client: Client) -> None:
    name, namespace = objects.name(obj), objects.namespace(obj)
    path = resource.path(name, namespace=namespace)
    await transport.send(
        Request(method="DELETE", path=path, headers={"content-type": "application/json"}, body=_AT_ONCE)
    )
    if objects.finalizers(obj):
        try:
            await client.patch(resource, name, MergePatch({"metadata": {"finalizers": None}}), namespace=namespace)
        except (NotFound, KubeError):
            return
