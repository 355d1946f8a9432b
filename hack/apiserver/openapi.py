"""OpenAPI v3 documents, from which kubectl explain prints and kubectl learns that the server validates fields.

A custom kind's document carries its CRD's schema with every description. Built-in kinds are described by the names
and types of their fields; their paths do not offer strategic merge patches, so that kubectl computes those from its
compiled types. The v2 document is empty: kubectl reads it for Lists and skips the kinds that it lacks.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from hack.apiserver.schema.go_types import type_of
from hack.apiserver.schema.type_schema import LIST_META, OBJECT_META, members, metadata_schemas, reference
from hack.apiserver.status import JSON_HEADERS, no_such_path
from upgrade_manager.kube.transport import Response

if TYPE_CHECKING:
    from hack.apiserver.resources import ResourceTable, Row
    from upgrade_manager.kube.transport import Request

_ROOT = "/openapi/v3"

#: The empty v2 document: JSON, or the same in protobuf (swagger is field 1, info is field 2).
_V2_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_V2 = {"swagger": "2.0", "info": {"title": "Kubernetes", "version": "v1.35.4"}, "paths": {}}
_V2_ENCODED = b"\x0a\x032.0\x12\x15\x0a\x0aKubernetes\x12\x07v1.35.4"

_FIELD_VALIDATION = {
    "name": "fieldValidation",
    "in": "query",
    "description": "What to do about fields that the schema does not name: Ignore, Warn or Strict.",
    "schema": {"type": "string", "uniqueItems": True},
}
_DRY_RUN = {
    "name": "dryRun",
    "in": "query",
    "description": "With All, everything is checked and nothing is stored.",
    "schema": {"type": "string", "uniqueItems": True},
}

#: The documents of a table by path, with the table's revision.
_CACHE: WeakKeyDictionary[ResourceTable, tuple[int, dict[str, bytes]]] = WeakKeyDictionary()


def respond(request: Request, table: ResourceTable) -> Response:
    """Return the document at a path under /openapi. Raises StatusError 404."""
    path = request.path.rstrip("/")
    if path == "/openapi/v2":
        return _version_2(request)
    documents = _documents(table)
    if path == _ROOT:
        paths = {name: {"serverRelativeURL": _url(name, body)} for name, body in documents.items()}
        return Response(status=200, headers=JSON_HEADERS, body=json.dumps({"paths": paths}).encode())
    body = documents.get(path.removeprefix(_ROOT + "/"))
    if body is None or not path.startswith(_ROOT):
        raise no_such_path()
    return Response(status=200, headers=JSON_HEADERS, body=body)


def _version_2(request: Request) -> Response:
    if "protobuf" in request.headers.get("accept", ""):
        return Response(status=200, headers={"content-type": _V2_PROTOBUF}, body=_V2_ENCODED)
    return Response(status=200, headers=JSON_HEADERS, body=json.dumps(_V2).encode())


def _hash(body: bytes) -> str:
    return hashlib.sha512(body).hexdigest().upper()


def _url(name: str, body: bytes) -> str:
    return f"{_ROOT}/{name}?hash={_hash(body)}"


def _documents(table: ResourceTable) -> dict[str, bytes]:
    cached = _CACHE.get(table)
    if cached is not None and cached[0] == table.revision:
        return cached[1]
    documents = {}
    for group in table.groups():
        for version in table.versions(group):
            name = f"apis/{group}/{version}" if group else f"api/{version}"
            documents[name] = json.dumps(document(table.rows(group, version))).encode()
    _CACHE[table] = (table.revision, documents)
    return documents


def document(rows: list[Row]) -> dict[str, Any]:
    """Return the OpenAPI document of one version of a group."""
    schemas: dict[str, Any] = metadata_schemas()
    paths: dict[str, Any] = {}
    for row in rows:
        schemas[schema_name(row)] = kind_schema(row, schemas)
        schemas[schema_name(row) + "List"] = _list_schema(row)
        paths |= _paths(row)
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.35.4"},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def schema_name(row: Row) -> str:
    """Return the component's name: the reversed group, version and kind."""
    resource = row.resource
    group = resource.group or "core.api.k8s.io"
    if resource.group and "." not in resource.group:
        group = f"{resource.group}.api.k8s.io"
    return ".".join([*reversed(group.split(".")), resource.version, resource.kind])


def kind_schema(row: Row, schemas: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a kind; types that a built-in kind refers to are added to `schemas`."""
    described = {"type": "object", "description": f"{row.resource.kind} of {row.resource.api_version}."}
    own = described | (row.schema or {})
    kind = None if row.custom else type_of(row.resource.name)
    properties = dict(own.get("properties") or {}) if kind is None else members(kind, schemas)
    properties["apiVersion"] = {
        "type": "string",
        "description": "APIVersion says which version of the schema this representation of the object follows.",
    }
    properties["kind"] = {"type": "string", "description": "Kind names the type of the object, in CamelCase."}
    metadata = reference(OBJECT_META) | {"description": "Standard object's metadata."}
    properties["metadata"] = metadata
    return own | {"properties": properties, "x-kubernetes-group-version-kind": [_gvk(row)]}


def _list_schema(row: Row) -> dict[str, Any]:
    kind = row.resource.kind
    return {
        "type": "object",
        "description": f"{row.list_kind} is a list of {kind}.",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": reference(LIST_META),
            "items": {"type": "array", "items": reference(schema_name(row))},
        },
        "x-kubernetes-group-version-kind": [_gvk(row) | {"kind": row.list_kind}],
    }


def _gvk(row: Row) -> dict[str, str]:
    return {"group": row.resource.group, "version": row.resource.version, "kind": row.resource.kind}


def _paths(row: Row) -> dict[str, Any]:
    resource = row.resource
    base = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"
    if resource.namespaced:
        base += "/namespaces/{namespace}"
    collection = f"{base}/{resource.plural}"
    found = {"list": "get", "create": "post", "deletecollection": "delete"}
    item = {"get": "get", "update": "put", "patch": "patch", "delete": "delete"}
    paths = {collection: {method: _operation(row, verb) for verb, method in found.items() if verb in row.verbs}}
    if "get" in row.verbs:
        one = f"{collection}/{{name}}"
        paths[one] = {method: _operation(row, verb) for verb, method in item.items() if verb in row.verbs}
        if row.status_subresource:
            paths[f"{one}/status"] = {
                method: _operation(row, verb) for verb, method in item.items() if verb in {"get", "update", "patch"}
            }
    return paths


def _operation(row: Row, verb: str) -> dict[str, Any]:
    shape = reference(schema_name(row) + ("List" if verb == "list" else ""))
    response = {"description": "OK", "content": {"application/json": {"schema": shape}}}
    operation: dict[str, Any] = {
        "tags": [row.resource.group or "core"],
        "operationId": f"{verb}{row.resource.kind}{row.resource.version}",
        "responses": {"200": response},
        "x-kubernetes-action": verb,
        "x-kubernetes-group-version-kind": _gvk(row),
    }
    if verb not in {"create", "update", "patch"}:
        return operation
    operation["parameters"] = [_DRY_RUN, _FIELD_VALIDATION]
    media = ["application/json-patch+json", "application/merge-patch+json"] if verb == "patch" else ["application/json"]
    operation["requestBody"] = {"content": {name: {"schema": shape} for name in media}, "required": True}
    return operation
