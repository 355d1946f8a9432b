"""The Go types of built-in kinds as OpenAPI schemas, for kubectl explain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hack.apiserver.schema.go_types import object_meta

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hack.apiserver.schema.go_types import Type

Schema = dict[str, Any]

_PREFIX = "io.k8s.api."
_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
OBJECT_META = _META + "ObjectMeta"
LIST_META = _META + "ListMeta"
_LIST_META: Schema = {
    "type": "object",
    "properties": {
        "continue": {"type": "string"},
        "remainingItemCount": {"type": "integer", "format": "int64"},
        "resourceVersion": {"type": "string"},
    },
}
_LEAVES: Mapping[str, Schema] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "float64": {"type": "number", "format": "double"},
    "bytes": {"type": "string", "format": "byte"},
    "time": {"type": "string", "format": "date-time"},
    "microtime": {"type": "string", "format": "date-time"},
    "quantity": {"type": "string"},
    "port": {"type": "string", "format": "int-or-string"},
}


def reference(name: str) -> Schema:
    """Return a reference to a component."""
    return {"allOf": [{"$ref": f"#/components/schemas/{name}"}], "default": {}}


def metadata_schemas() -> dict[str, Schema]:
    """Return the schemas of ObjectMeta and ListMeta, with what they refer to."""
    components = {LIST_META: _LIST_META}
    _component(object_meta(), components)
    return components


def members(kind: Type, components: dict[str, Schema]) -> dict[str, Schema]:
    """Return the schemas of a struct's fields by name; referenced types are added to `components` once."""
    return {name: _schema(field.type, components) for name, field in kind.fields.items()}


def _schema(kind: Type, components: dict[str, Schema]) -> Schema:
    if kind.form == "struct":
        return reference(_component(kind, components))
    if kind.form == "leaf":
        return _LEAVES[kind.leaf]
    below = {} if kind.item is None else _schema(kind.item, components)
    if kind.form == "list":
        return {"type": "array", "items": below}
    return {"type": "object", "additionalProperties": below} if kind.form == "map" else {"type": "object"}


def _component(kind: Type, components: dict[str, Schema]) -> str:
    name = OBJECT_META if kind.name == "v1.ObjectMeta" else _PREFIX + kind.name
    if name not in components:
        components[name] = {}  # for a type that contains itself
        components[name] = {"type": "object", "properties": members(kind, components)}
    return name
