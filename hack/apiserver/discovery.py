"""Discovery documents: /api and /apis in the aggregated format, which kubectl prefers, and others."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hack.apiserver.status import JSON_HEADERS, not_acceptable
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

#: The only format of the documents; Kubernetes 1.35 has no other version of it.
_FORMAT = {"g": "apidiscovery.k8s.io", "v": "v2", "as": "APIGroupDiscoveryList"}
_SCALE = {"group": "autoscaling", "version": "v1", "kind": "Scale"}
_SUBRESOURCE_VERBS = ["get", "patch", "update"]


def version() -> Response:
    """Return the response of /version."""
    return Response(status=200, headers=JSON_HEADERS, body=json.dumps(VERSION).encode())


def respond(request: Request, table: ResourceTable) -> Response:
    """Return the document at /api or /apis. Raises StatusError 406."""
    if not any(_accepted(choice) for choice in request.headers.get("accept", "").split(",")):
        raise not_acceptable("the embedded API server offers only aggregated discovery (apidiscovery.k8s.io/v2)")
    groups = [""] if request.path.strip("/") == "api" else [group for group in table.groups() if group]
    document = {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": [_discovered_group(table, group) for group in groups],
    }
    content_type = "application/json;" + ";".join(f"{key}={value}" for key, value in _FORMAT.items())
    return Response(status=200, headers={"content-type": content_type}, body=json.dumps(document).encode())


def resource_list(path: str, table: ResourceTable) -> Response | None:
    """Return the document at /apis/GROUP/VERSION; None for another path, or a version that is not served."""
    match path.removeprefix("/apis/").split("/"):
        case [group, version] if path.startswith("/apis/") and (rows := table.rows(group, version)):
            resources = [_listed_resource(row) for row in rows]
            head = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{group}/{version}"}
            body = json.dumps({**head, "resources": resources}).encode()
            return Response(status=200, headers=JSON_HEADERS, body=body)
    return None


def _listed_resource(row: Row) -> dict[str, Any]:
    resource = row.resource
    entry = {"name": resource.plural, "singularName": row.singular, "namespaced": resource.namespaced}
    return {**entry, "kind": resource.kind, "verbs": list(row.verbs)}


def _accepted(choice: str) -> bool:
    media, *options = (part.strip() for part in choice.split(";"))
    given = dict(option.split("=", 1) for option in options if "=" in option)
    return media == "application/json" and given.items() >= _FORMAT.items()


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
    kinds = ({"scale": _SCALE} if row.scale_subresource else {}) | ({"status": own} if row.status_subresource else {})
    if kinds:
        entry["subresources"] = [
            {"subresource": name, "responseKind": kind, "verbs": _SUBRESOURCE_VERBS} for name, kind in kinds.items()
        ]
    return entry
