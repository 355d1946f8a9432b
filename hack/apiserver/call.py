"""A request in API terms, derived from its path without a resource table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:
    from upgrade_manager.kube.pager import Query
    from upgrade_manager.kube.transport import Request

WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
_ITEM_VERBS = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_COLLECTION_VERBS = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request in API terms."""

    #: get, list, watch, create, update, patch, delete, deletecollection; else the method in lower case.
    verb: str
    #: Resource with group, `jobs.batch`, `nodes`; empty for other paths.
    resource: str = ""
    version: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""
    user_agent: str = ""
    dry_run: bool = False

    @property
    def is_write(self) -> bool:
        """Report whether the request writes."""
        return bool(self.resource) and self.verb in WRITES and not self.dry_run


def call_of(request: Request) -> Call:
    """Derive the call from a request."""
    return _call_of(request.method, request.path, request.query, request.headers.get("user-agent", ""))


# Controllers repeat the same few requests all the time.
@lru_cache(maxsize=4096)
def _call_of(method: str, path: str, query: Query, agent: str) -> Call:
    group, version, rest = _split(path)
    if not rest:
        return Call(verb=method.lower(), path=path, user_agent=agent)
    namespace, rest = _namespace(rest)
    name = rest[1] if len(rest) > 1 else ""
    subresource = "/".join(rest[2:])
    return Call(
        verb=_verb(method, query, name=name, subresource=subresource),
        resource=f"{rest[0]}.{group}" if group else rest[0],
        version=version,
        subresource=subresource,
        namespace=namespace,
        name=name,
        path=path,
        user_agent=agent,
        dry_run=any(key == "dryRun" and value for key, value in query),
    )


def truthy(value: str) -> bool:
    """Parse a boolean parameter: `watch` without a value is true."""
    return value.lower() not in {"false", "0"}


def _split(path: str) -> tuple[str, str, list[str]]:
    """Return group, version, and the segments from the resource on."""
    parts = [unquote(part) if "%" in part else part for part in path.split("/") if part]
    parts = ["apis", "", *parts[1:]] if parts[:1] == ["api"] else parts
    if parts[:1] != ["apis"] or len(parts) < 4:  # noqa: PLR2004  # apis, group, version, resource
        return "", "", []
    return parts[1], parts[2], parts[3:]


def _namespace(rest: list[str]) -> tuple[str, list[str]]:
    """Split `namespaces/NAME/...`; the namespace itself and its subresources stay a resource."""
    if rest[0] != "namespaces" or len(rest) < 3 or rest[2:] == ["status"]:  # noqa: PLR2004
        return "", rest
    return rest[1], rest[2:]


def _verb(method: str, query: Query, *, name: str, subresource: str) -> str:
    if subresource and method == "POST":
        return "create"
    verb = (_ITEM_VERBS if name else _COLLECTION_VERBS).get(method, method.lower())
    watching = any(key == "watch" and truthy(value) for key, value in query)
    return "watch" if verb == "list" and watching else verb
