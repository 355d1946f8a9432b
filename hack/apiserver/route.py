"""The resource, verb and name that a request path and query address."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hack.apiserver.call import call_of, truthy
from hack.apiserver.status import (
    method_not_allowed,
    no_such_path,
    no_such_resource,
    not_found,
)

if TYPE_CHECKING:
    from hack.apiserver.call import Call
    from hack.apiserver.resources import ResourceTable, Row
    from upgrade_manager.kube.transport import Request

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


def flag(request: Request, name: str) -> bool:
    """Return whether a boolean parameter is true."""
    return any(key == name and truthy(value) for key, value in request.query)


def resolve(request: Request, table: ResourceTable) -> Route | None:
    """Return the route of a request; None for paths without a resource. Raises StatusError 404 or 405."""
    call = call_of(request)
    if not call.resource:
        return None
    plural, _, group = call.resource.partition(".")
    row = table.find(group, call.version, plural)
    if row is None:
        # Unknown resources of built-in groups get a Status, unknown groups plain text.
        raise no_such_resource() if _is_builtin(group, table) else no_such_path()
    name, namespace, subresource = call.name, call.namespace, call.subresource
    homeless = (
        not namespace and row.resource.namespaced and (name or (row.custom and request.method in {"POST", "DELETE"}))
    )
    if homeless or (namespace and not row.resource.namespaced):
        raise no_such_path() if row.custom else no_such_resource()
    if subresource and not _has(row, subresource):
        raise not_found(row.resource, name) if row.custom else no_such_resource()
    _check_verb(call, row)
    return Route(row=row, verb=call.verb, namespace=namespace, name=name, subresource=subresource)


def _is_builtin(group: str, table: ResourceTable) -> bool:
    return any(row.resource.group == group and not row.custom for row in table)


def _has(row: Row, subresource: str) -> bool:
    return (subresource == "status" and row.status_subresource) or (subresource == "scale" and row.scale_subresource)


def _check_verb(call: Call, row: Row) -> None:
    """Raise StatusError 405 for a verb that the kind or subresource does not offer at this path."""
    allowed = _SUBRESOURCE_VERBS if call.subresource else row.verbs
    needs_namespace = call.verb in {"create", "deletecollection"} and row.resource.namespaced
    if call.verb not in allowed or (needs_namespace and not call.namespace):
        raise method_not_allowed()
