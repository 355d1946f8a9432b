"""Discovery documents: /api, /apis, /apis/GROUP, /apis/GROUP/VERSION, plain and aggregated, and /version.

kubectl prefers the aggregated form (apidiscovery.k8s.io/v2), which needs two requests only.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from hack.apiserver.resources import STORED_VERBS
from hack.apiserver.status import JSON_HEADERS, no_such_path, not_acceptable
from upgrade_manager.kube.transport import Response

if TYPE_CHECKING:
    from hack.apiserver.resources import ResourceTable, Row
    from upgrade_manager.kube.transport import Request

#: The response of /version. Clients compare major and minor with their version.
VERSION = {
    "major": "1",
    "minor": "35",
    "emulationMajor": "1",
    "emulationMinor": "35",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "34",
    "gitVersion": "v1.35.4",
    "gitCommit": "0000000000000000000000000000000000000000",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "embedded",
    "compiler": "embedded",
    "platform": "linux/amd64",
}

#: Versions of the aggregated format; Kubernetes 1.35 removed v2beta1.
AGGREGATED = ("v2",)

#: Depth of /apis/GROUP/VERSION.
_VERSION_DEPTH = 3

_SUBRESOURCE_VERBS = ["get", "patch", "update"]


def version() -> Response:
    """Return the response of /version."""
    return _json(VERSION)


def respond(request: Request, table: ResourceTable) -> Response:
    """Return the document at a path of at most /apis/GROUP/VERSION. Raises StatusError 404."""
    root, *parts = request.path.strip("/").split("/")
    if root == "api" and len(parts) <= 1:
        return _core(request, table, parts)
    if root == "apis" and len(parts) < _VERSION_DEPTH:
        return _groups(request, table, parts)
    raise no_such_path()


def _core(request: Request, table: ResourceTable, parts: list[str]) -> Response:
    if parts:
        return _resources(table, "", parts[0])
    if version := _aggregated_version(request):
        return _aggregate(request, table, [""], version)
    addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": request.headers.get("host", "127.0.0.1")}]
    return _json({"kind": "APIVersions", "versions": table.versions(""), "serverAddressByClientCIDRs": addresses})


def _groups(request: Request, table: ResourceTable, parts: list[str]) -> Response:
    named = [group for group in table.groups() if group]
    if not parts:
        if version := _aggregated_version(request):
            return _aggregate(request, table, named, version)
        groups = [_group(table, group) for group in named]
        return _json({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
    if parts[0] not in named:
        raise no_such_path()
    if len(parts) == 1:
        return _json({"kind": "APIGroup", "apiVersion": "v1"} | _group(table, parts[0]))
    return _resources(table, *parts)


def _json(document: dict[str, Any]) -> Response:
    return Response(status=200, headers=JSON_HEADERS, body=json.dumps(document).encode())


def _group(table: ResourceTable, group: str) -> dict[str, Any]:
    versions = [{"groupVersion": f"{group}/{version}", "version": version} for version in table.versions(group)]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def _resources(table: ResourceTable, group: str, version: str) -> Response:
    """Return the APIResourceList of one version of a group."""
    rows = table.rows(group, version)
    if not rows:
        raise no_such_path()
    resources = []
    for row in rows:
        resources.append(_resource(row))
        for name, kind in subresources(row):
            resources.append(
                {
                    "name": f"{row.resource.plural}/{name}",
                    "singularName": "",
                    "namespaced": row.resource.namespaced,
                    **kind,
                    "verbs": _SUBRESOURCE_VERBS,
                }
            )
    group_version = f"{group}/{version}" if group else version
    head = {"kind": "APIResourceList"} | ({"apiVersion": "v1"} if group else {})
    return _json(head | {"groupVersion": group_version, "resources": resources})


def subresources(row: Row) -> list[tuple[str, dict[str, str]]]:
    """Return the subresources of a kind: name, and the kind of object."""
    found: list[tuple[str, dict[str, str]]] = []
    if row.status_subresource:
        found.append(("status", {"kind": row.resource.kind}))
    return found


def _resource(row: Row) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": row.resource.plural,
        "singularName": row.singular,
        "namespaced": row.resource.namespaced,
        "kind": row.resource.kind,
        "verbs": list(row.verbs),
    }
    if row.short_names:
        entry["shortNames"] = list(row.short_names)
    if row.categories:
        entry["categories"] = list(row.categories)
    if row.verbs == STORED_VERBS:
        entry["storageVersionHash"] = hashlib.sha256(row.storage.encode()).hexdigest()[:11] + "="
    return entry


def _aggregated_version(request: Request) -> str:
    """Return the version of the aggregated format that the client prefers; empty for the plain documents.

    Raises StatusError 406.
    """
    for choice in request.headers.get("accept", "").split(","):
        media, *options = (part.strip() for part in choice.split(";"))
        given = dict(option.split("=", 1) for option in options if "=" in option)
        if media in {"", "*/*"} or (media == "application/json" and "g" not in given):
            return ""
        if media != "application/json" or given.get("g") != "apidiscovery.k8s.io":
            continue
        if given.get("v") in AGGREGATED and given.get("as") == "APIGroupDiscoveryList":
            return given["v"]
    raise not_acceptable("only the following media types are accepted: application/json")


def _aggregate(request: Request, table: ResourceTable, groups: list[str], version: str) -> Response:
    document = {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{version}",
        "metadata": {},
        "items": [_discovered_group(table, group) for group in groups],
    }
    body = json.dumps(document).encode()
    etag = f'"{hashlib.sha256(body).hexdigest()}"'
    content_type = f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
    headers = {"etag": etag, "vary": "Accept", "cache-control": "public"}
    if request.headers.get("if-none-match") == etag:
        return Response(status=304, headers=headers)
    return Response(status=200, headers=headers | {"content-type": content_type}, body=body)


def _discovered_group(table: ResourceTable, group: str) -> dict[str, Any]:
    versions = [
        {
            "version": version,
            "resources": [_discovered_resource(row) for row in table.rows(group, version)],
            "freshness": "Current",
        }
        for version in table.versions(group)
    ]
    return {"metadata": {"name": group} if group else {}, "versions": versions}


def _discovered_resource(row: Row) -> dict[str, Any]:
    resource = row.resource
    # Built-in kinds omit the group and version of the enclosing entry.
    group, version = (resource.group, resource.version) if row.custom else ("", "")
    own = {"group": group, "version": version, "kind": resource.kind}
    entry: dict[str, Any] = {
        "resource": resource.plural,
        "responseKind": own,
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": row.singular,
        "verbs": list(row.verbs),
    }
    if row.short_names:
        entry["shortNames"] = list(row.short_names)
    if row.categories:
        entry["categories"] = list(row.categories)
    below = [
        {"subresource": name, "responseKind": own | kind, "verbs": _SUBRESOURCE_VERBS}
        for name, kind in subresources(row)
    ]
    return entry | ({"subresources": below} if below else {})
