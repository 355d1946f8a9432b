"""Whole objects inside of custom resources (x-kubernetes-embedded-resource): they need a type, and sound metadata."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hack.apiserver.schema.decoding import decode
from hack.apiserver.schema.field_error import FieldError, required
from hack.apiserver.schema.go_types import object_meta
from hack.apiserver.schema.object_meta import validate_parts

if TYPE_CHECKING:
    from collections.abc import Iterator

Schema = dict[str, Any]


def known_metadata(metadata: Any, path: str, unknown: list[str]) -> Any:
    """The metadata of an embedded object without what ObjectMeta does not have. Raises DecodingError."""
    strange: list[str] = []
    kept = decode(metadata, object_meta(), unknown=strange)
    unknown += [f"{path}.{name}" for name in strange]
    return kept


def validate_embedded(value: Any, schema: Schema, *, field: str = "") -> Iterator[FieldError]:
    """Findings about embedded objects in the value and all below it."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from validate_embedded(item, schema.get("items") or {}, field=f"{field}[{index}]")
    if not isinstance(value, dict):
        return
    if schema.get("x-kubernetes-embedded-resource"):
        yield from (required(f"{field}.{key}") for key in ("apiVersion", "kind") if not value.get(key))
        for error in validate_parts(value.get("metadata") or {}):
            yield replace(error, field=f"{field}.{error.field}")
    known, rest = schema.get("properties") or {}, schema.get("additionalProperties")
    for key, item in value.items():
        below = known.get(key, rest if isinstance(rest, dict) else None)
        if below is not None:
            yield from validate_embedded(item, below, field=f"{field}.{key}" if field else key)
