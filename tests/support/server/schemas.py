"""JSON schemas of the API server's kinds, from its OpenAPI document: strict, as kubeconform reads them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

#: Where kubeconform finds the schema of a kind, below a folder.
LOCATION = "{{.Group}}/{{.ResourceAPIVersion}}/{{.ResourceKind}}.json"
_REF = "#/definitions/"
#: Types whose JSON is not what the document says.
_SCALARS = {
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": ["integer", "string"],
    "io.k8s.apimachinery.pkg.api.resource.Quantity": ["number", "string"],
}


def write_schemas(document: Mapping[str, Any], folder: Path) -> None:
    """Write a file for each kind of an OpenAPI v2 document."""
    definitions = {name: _strict(name, one) for name, one in document["definitions"].items()}
    for name, definition in document["definitions"].items():
        for kind in definition.get("x-kubernetes-group-version-kind", ()):
            # kubeconform has the version for the group of core kinds.
            path = folder / (kind["group"] or kind["version"]) / kind["version"] / f"{kind['kind'].lower()}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            used = {one: definitions[one] for one in _closure(name, definitions)}
            path.write_text(json.dumps({"$ref": _REF + name, "definitions": used}))


def _strict(name: str, schema: Any) -> Any:
    """Return a schema that refuses unknown fields."""
    if name in _SCALARS:
        return {"type": _SCALARS[name]}
    if isinstance(schema, list):
        return [_strict("", one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("x-kubernetes-int-or-string"):
        return {"type": ["integer", "string"]}
    strict = {key: _strict("", value) for key, value in schema.items() if key != "properties"}
    if "properties" in schema:
        strict["properties"] = {field: _strict("", value) for field, value in schema["properties"].items()}
        is_open = schema.get("x-kubernetes-preserve-unknown-fields") or "additionalProperties" in schema
        strict |= {} if is_open else {"additionalProperties": False}
    return strict


def _closure(name: str, definitions: Mapping[str, Any]) -> set[str]:
    """Return the definitions that one refers to, itself included."""
    found, waiting = {name}, [name]
    while waiting:
        new = {*_references(definitions[waiting.pop()])} - found
        found |= new
        waiting += new
    return found


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, list):
        for one in schema:
            yield from _references(one)
    elif isinstance(schema, dict):
        for key, value in schema.items():
            if key == "$ref" and isinstance(value, str):
                yield value.removeprefix(_REF)
            else:
                yield from _references(value)
