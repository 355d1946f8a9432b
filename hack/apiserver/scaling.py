"""The scale subresource, with which `kubectl scale` changes the replicas of a Deployment. A Scale is not stored."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hack.apiserver.bodies import media_type, object_body
from hack.apiserver.patches import patched
from hack.apiserver.status import JSON_HEADERS, bad_request, not_found
from hack.apiserver.stored import encode
from hack.apiserver.writing import write_options
from upgrade_manager.kube.transport import Response

if TYPE_CHECKING:
    from hack.apiserver.admission import Object
    from hack.apiserver.identity import User
    from hack.apiserver.route import Route
    from hack.apiserver.writes import Writer
    from upgrade_manager.kube.transport import Request

SUBRESOURCE = "scale"
_METADATA = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaler:
    """Handler of requests for Scales."""

    writer: Writer

    async def respond(self, route: Route, request: Request, user: User) -> Response:
        """Return or change the replicas. Raises StatusError."""
        if route.verb == "get":
            stored = self.writer.storage.get(route.row.storage, route.key)
            if stored is None:
                raise not_found(route.row.resource, route.name)
        else:
            options = write_options(route, request, user)

            def scaled(obj: Object) -> Object:
                return _scaled(obj, _wanted(route, request, obj))

            # A change of the object itself, whose generation it counts.
            target = replace(route, verb="update", subresource="")
            stored = await self.writer.update(target, scaled, options, whole=False)
        return Response(status=200, headers=JSON_HEADERS, body=encode(_scale(stored.object)))


def _wanted(route: Route, request: Request, obj: Object) -> Object:
    """Return the Scale that a request asks for."""
    if route.verb == "patch":
        return patched(route.row, _scale(obj), media_type=media_type(request), body=request.body)
    return object_body(request, route.row)


def _scaled(obj: Object, scale: Object) -> Object:
    """Return the object with the replicas of a Scale, and its precondition."""
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    if not isinstance(replicas, int):
        raise bad_request(f"spec.replicas is not a number: {replicas}")
    revision = (scale.get("metadata") or {}).get("resourceVersion") or obj["metadata"]["resourceVersion"]
    metadata = obj["metadata"] | {"resourceVersion": revision}
    return obj | {"metadata": metadata, "spec": obj["spec"] | {"replicas": replicas}}


def _scale(obj: Object) -> Object:
    """Return the Scale of an object that selects its Pods by labels."""
    replicas = obj["spec"].get("replicas", 1)
    labels = obj["spec"]["selector"].get("matchLabels") or {}
    selector = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: obj["metadata"][key] for key in _METADATA},
        "spec": {"replicas": replicas} if replicas else {},
        "status": {"replicas": (obj.get("status") or {}).get("replicas", 0), "selector": selector},
    }
