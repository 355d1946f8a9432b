"""Bindings, with which a scheduler assigns a Pod to a node. A Binding is not stored; the Pod is updated."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hack.apiserver.bodies import object_body
from hack.apiserver.route import Route
from hack.apiserver.status import JSON_HEADERS, bad_request, conflict
from hack.apiserver.stored import encode
from hack.apiserver.writing import write_options
from upgrade_manager.api.timestamps import format_time
from upgrade_manager.kube.resources import Resource
from upgrade_manager.kube.transport import Response

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from hack.apiserver.admission import Object
    from hack.apiserver.identity import User
    from hack.apiserver.resources import ResourceTable
    from hack.apiserver.writes import Writer
    from upgrade_manager.kube.transport import Request

_BINDINGS = Resource(group="", version="v1", plural="pods/binding", kind="Binding")
_SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


@dataclass(frozen=True, slots=True, kw_only=True)
class Binder:
    """Handler of POST requests for Bindings."""

    table: ResourceTable
    writer: Writer
    now: Callable[[], datetime]

    async def respond(self, route: Route, request: Request, user: User) -> Response:
        """Bind a Pod. Raises StatusError: 404 without the Pod, 409 when it is assigned already."""
        binding = object_body(request, route.row)
        name, node = (binding.get("metadata") or {}).get("name"), (binding.get("target") or {}).get("name")
        pods = self.table.find("", "v1", "pods")
        if pods is None or not name or not node:
            raise bad_request("a Binding needs metadata.name and target.name")
        target = Route(row=pods, verb="update", namespace=route.namespace, name=name)
        options = write_options(route, request, user)
        placing = replace(options, subresource="binding")
        await self.writer.update(target, lambda pod: _bound(pod, node), placing, whole=False)
        scheduled = replace(target, subresource="status")
        status = replace(options, subresource="status")
        await self.writer.update(scheduled, self._scheduled, status, whole=False)
        return Response(status=201, headers=JSON_HEADERS, body=encode(_SUCCESS))

    def _scheduled(self, pod: Object) -> Object:
        """Return the Pod with the condition PodScheduled."""
        status = pod.get("status") or {}
        at = format_time(self.now())
        scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": at}
        others = [one for one in status.get("conditions") or () if one.get("type") != "PodScheduled"]
        return pod | {"status": status | {"conditions": [*others, scheduled]}}


def _bound(pod: Object, node: str) -> Object:
    """Return the Pod with its node."""
    spec, name = pod["spec"], pod["metadata"]["name"]
    if pod["metadata"].get("deletionTimestamp"):
        raise conflict(_BINDINGS, name, f"pod {name} is being deleted, cannot be assigned to a host")
    if spec.get("nodeName"):
        raise conflict(_BINDINGS, name, f'pod {name} is already assigned to node "{spec["nodeName"]}"')
    return pod | {"spec": spec | {"nodeName": node}}
