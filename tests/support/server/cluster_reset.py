"""Empties a real API server between two tests, which is faster than a new one."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable
from contextlib import suppress
from weakref import WeakKeyDictionary

from hack.control_plane.backend import DEFINITION_KEYS, kinds, may_have_objects, objects_of
from hack.control_plane.control_plane import ControlPlane
from upgrade_manager.kube import objects
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.errors import KubeError
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import Resource
from upgrade_manager.kube.transport import Request, Transport

#: Objects that exist before the first test, by uid.
_before: WeakKeyDictionary[ControlPlane, frozenset[str]] = WeakKeyDictionary()
#: Etcd's keys after the first reset.
_clean: WeakKeyDictionary[ControlPlane, frozenset[str]] = WeakKeyDictionary()
#: Kept: deleting a namespace, serving a definition and compiling a policy take long.
_KEPT = {
    "Namespace",
    "CustomResourceDefinition",
    "APIService",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
}
#: In etcd; an unknown key only costs time.
_KEPT_KEY = re.compile(
    rf"({DEFINITION_KEYS}|/registry/namespaces/|/registry/apiregistration\.k8s\.io/apiservices/|"
    r"/registry/validatingadmissionpolic(ies|ybindings)/|"
    r"/registry/serviceaccounts/[^/]+/default$)"
)
#: The ServiceAccount that a controller creates in each namespace.
_DEFAULT = ("ServiceAccount", "default")
#: Namespaces with objects of the API server. Objects elsewhere, and Nodes, are left over from a test.
_SYSTEM_NAMESPACES = {"", "default", "kube-system", "kube-public", "kube-node-lease"}
_TIMEOUT = 60.0
_INTERVAL = 0.05
_DELETE_NOW = json.dumps({"gracePeriodSeconds": 0, "propagationPolicy": "Background"}).encode()


async def reset(plane: ControlPlane, transport: Transport, client: Client) -> None:
    """Delete what tests have created, with finalizers. Raises TimeoutError when an object reappears."""
    served = {(resource.api_version, resource.kind): resource for resource in await kinds(client)}
    found = await objects_of(may_have_objects(served.values(), await _keys(plane)), client)
    if plane not in _before:
        _before[plane] = frozenset(objects.uid(obj) for obj in found if _is_system_object(obj))
    async with asyncio.timeout(_TIMEOUT):
        while left := _left(found, plane):
            resources = [(served[obj["apiVersion"], obj["kind"]], obj) for obj in left]
            await asyncio.gather(*(_remove(resource, obj, transport, client) for resource, obj in resources))
            await asyncio.sleep(_INTERVAL)
            found = await objects_of({resource for resource, _ in resources}, client)
            if not _left(found, plane) and not await _is_clean(plane):
                # Controllers may have created objects of other kinds meanwhile.
                found = await objects_of(may_have_objects(served.values(), await _keys(plane)), client)
    _clean.setdefault(plane, await _keys(plane))


async def _is_clean(plane: ControlPlane) -> bool:
    """Return True if etcd has no other keys than after the first reset, but those of objects that are kept."""
    return all(_KEPT_KEY.match(key) for key in await _keys(plane) - _clean.get(plane, frozenset()))


async def _keys(plane: ControlPlane) -> frozenset[str]:
    return await asyncio.to_thread(plane.keys)


def _left(found: Iterable[Object], plane: ControlPlane) -> list[Object]:
    return [obj for obj in found if not _is_kept(obj) and objects.uid(obj) not in _before[plane]]


def _is_kept(obj: Object) -> bool:
    return obj["kind"] in _KEPT or (obj["kind"], objects.name(obj)) == _DEFAULT


def _is_system_object(obj: Object) -> bool:
    return objects.namespace(obj) in _SYSTEM_NAMESPACES and obj["kind"] != "Node"


async def _remove(resource: Resource, obj: Object, transport: Transport, client: Client) -> None:
    name, namespace = objects.name(obj), objects.namespace(obj)
    path = resource.path(name, namespace=namespace)
    await transport.send(
        Request(method="DELETE", path=path, headers={"content-type": "application/json"}, body=_DELETE_NOW)
    )
    if objects.finalizers(obj):
        with suppress(KubeError):
            await client.patch(resource, name, MergePatch({"metadata": {"finalizers": None}}), namespace=namespace)
