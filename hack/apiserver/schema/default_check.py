"""Whether the default that a schema gives is one that the schema would take."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hack.apiserver.schema.field_error import FieldError, invalid
from hack.apiserver.schema.pruning import prune
from hack.apiserver.schema.validation import validate

if TYPE_CHECKING:
    from collections.abc import Iterator


def validate_default(schema: dict[str, Any], field: str) -> Iterator[FieldError]:
    """Findings about the default of a node of a CustomResourceDefinition's schema."""
    value = schema["default"]
    if prune({"": value}, {"properties": {"": schema}})[1]:
        yield invalid(field, value, "must not have unknown fields")
    for error in validate(value, schema):
        where = f"{field}.{error.field}" if error.field else field
        # A value without a field is spoken of as if its field had an empty name.
        detail = error.detail.replace('""', " in body", 1) if not error.field else error.detail
        yield replace(error, field=where, detail=detail)
