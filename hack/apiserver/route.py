"""The resource, verb and name that a request path and query address."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

from hack.apiserver.status import (
    method_not_allowed,
    no_such_path,
    no_such_resource,
    not_found,
)

if TYPE_CHECKING:
    from hack.apiserver.resources import ResourceTable, Row
    from upgrade_manager.kube.transport import Request

_ITEM_VERBS = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_COLLECTION_VERBS = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}
#: The verbs of a subresource.
_SUBRESOURCE_VERBS = ("get", "update", "patch")


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A request for a kind in the resource table."""

    row: Row
    verb: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """The object's key in its collection."""
        return (self.namespace, self.name)


def truthy(value: str) -> bool:
    """Parse a boolean parameter: `watch` without a value is true."""
    return value.lower() not in {"false", "0"}


def flag(request: Request, name: str) -> bool:
    """Return whether a boolean parameter is true."""
    return any(key == name and truthy(value) for key, value in request.query)


def resolve(request: Request, table: ResourceTable) -> Route | None:
    """Return the route of a request; None for paths without a resource. Raises StatusError 404 or 405."""
    group, version, rest = _split(request.path)
    if not rest:
        return None
    namespace, rest = _namespace(rest)
    row = table.find(group, version, rest[0])
    if row is None:
        # Unknown resources of built-in groups get a Status, unknown groups plain text.
        raise no_such_resource() if _is_builtin(group, table) else no_such_path()
    name = rest[1] if len(rest) > 1 else ""
    homeless = (
        not namespace and row.resource.namespaced and (name or (row.custom and request.method in {"POST", "DELETE"}))
    )
    if homeless or (namespace and not row.resource.namespaced):
        raise no_such_path() if row.custom else no_such_resource()
    subresource = "/".join(rest[2:])
    if subresource and not _has(row, subresource):
        raise not_found(row.resource, name) if row.custom else no_such_resource()
    verb = _verb(request, row, name, subresource)
    return Route(row=row, verb=verb, namespace=namespace, name=name, subresource=subresource)


def _split(path: str) -> tuple[str, str, list[str]]:
    parts = [unquote(part) if "%" in part else part for part in path.split("/") if part]
    if not parts or parts[0] not in {"api", "apis"}:
        return "", "", []
    parts = parts if parts[0] == "apis" else ["apis", "", *parts[1:]]
    if len(parts) < 4:  # noqa: PLR2004  # apis, group, version, resource
        return "", "", []
    return parts[1], parts[2], parts[3:]


def _namespace(rest: list[str]) -> tuple[str, list[str]]:
    """Split `namespaces/NAME/...`; the namespace itself and its subresources stay a resource."""
    if rest[0] != "namespaces" or len(rest) < 3 or (len(rest) == 3 and rest[2] in {"status", "finalize"}):  # noqa: PLR2004
        return "", rest
    return rest[1], rest[2:]


def _is_builtin(group: str, table: ResourceTable) -> bool:
    return any(row.resource.group == group and not row.custom for row in table)


def _has(row: Row, subresource: str) -> bool:
    if subresource == "finalize":
        return row.resource.name == "namespaces"
    return (subresource == "status" and row.status_subresource) or (subresource == "scale" and row.scale_subresource)


def _verb(request: Request, row: Row, name: str, subresource: str) -> str:
    verb = (_ITEM_VERBS if name else _COLLECTION_VERBS).get(request.method, "")
    if verb == "list" and flag(request, "watch"):
        verb = "watch"
    allowed = _SUBRESOURCE_VERBS if subresource else row.verbs
    needs_namespace = verb in {"create", "deletecollection"} and row.resource.namespaced
    if verb not in allowed or (needs_namespace and "/namespaces/" not in request.path):
        raise method_not_allowed()
    return verb
