"""The scale subresource: one number of a workload, read and written as an autoscaling/v1 Scale (`kubectl scale`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hack.apiserver.patches import patched
from hack.apiserver.route import Route
from hack.apiserver.schema.field_error import invalid
from hack.apiserver.status import JSON_HEADERS, not_found
from hack.apiserver.status import invalid as invalid_object
from hack.apiserver.stored import encode
from hack.apiserver.writing import media_type, object_body, write_options
from upgrade_manager.kube.transport import Response

if TYPE_CHECKING:
    from hack.apiserver.admission import Object
    from hack.apiserver.identity import User
    from hack.apiserver.writes import Writer
    from upgrade_manager.kube.transport import Request

#: Of the workload's metadata, what its Scale has too.
_METADATA = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """Answers requests for scale subresources."""

    writer: Writer

    async def respond(self, route: Route, request: Request, user: User) -> Response:
        """Answer a get, update or patch. Raises StatusError."""
        if route.verb == "get":
            stored = self.writer.storage.get(route.row.storage, route.key)
            if stored is None:
                raise not_found(route.row.resource, route.name)
            return _answer(stored.object)
        parent = Route(row=route.row, verb="update", namespace=route.namespace, name=route.name)
        options = write_options(parent, request, user)
        changed = await self.writer.update(
            parent, lambda workload: _scaled(route, workload, request), options, whole=False
        )
        return _answer(changed.object)


def scale_of(workload: Object) -> Object:
    """The Scale of a workload; no replicas at all mean one."""
    metadata, spec, status = workload["metadata"], workload.get("spec") or {}, workload.get("status") or {}
    labels = (spec.get("selector") or {}).get("matchLabels") or {}
    selector = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: metadata[key] for key in _METADATA if key in metadata},
        "spec": {"replicas": spec.get("replicas", 1)},
        "status": {"replicas": status.get("replicas", 0)} | ({"selector": selector} if selector else {}),
    }


def _answer(workload: Object) -> Response:
    return Response(status=200, headers=JSON_HEADERS, body=encode(scale_of(workload)))


def _scaled(route: Route, workload: Object, request: Request) -> Object:
    """The workload with the replicas of the Scale that was sent, and the resourceVersion for which that was meant."""
    if route.verb == "patch":
        scale = patched(route.row, scale_of(workload), media_type=media_type(request), body=request.body)
    else:
        scale = object_body(request, route.row)
    replicas: Any = (scale.get("spec") or {}).get("replicas", 0)
    if not isinstance(replicas, int) or replicas < 0:
        fault = invalid("spec.replicas", replicas, "must be greater than or equal to 0")
        raise invalid_object(route.row.resource, route.name, [fault])
    given = (scale.get("metadata") or {}).get("resourceVersion")
    metadata = workload["metadata"] | ({"resourceVersion": given} if given else {})
    return workload | {"metadata": metadata, "spec": (workload.get("spec") or {}) | {"replicas": replicas}}
