"""Validation of a custom resource by the OpenAPI v3 schema of its CRD.

The rules and messages are those of kube-openapi's validator in kube-apiserver 1.35; errors of values that an update
leaves unchanged are dropped (validation ratcheting).
"""

from __future__ import annotations

import re
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from hack.apiserver.schema.correlation import ABSENT, Old
from hack.apiserver.schema.field_error import (
    FieldError,
    go_value,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
    type_invalid,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Schema = dict[str, Any]

_DATE_TIME = re.compile(r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})")


def validate(value: Any, schema: Schema, *, field: str = "", old: Old = ABSENT) -> list[FieldError]:
    """Return the errors of the value and all below it; `old` is the value that an update replaces."""
    if old.same(value):
        return []
    errors = list(_node(value, schema, field))
    if isinstance(value, dict):
        errors += _properties(value, schema, field, old)
    elif isinstance(value, list):
        items = schema.get("items")
        for index, item in enumerate(value if items else ()):
            errors += validate(item, items or {}, field=f"{field}[{index}]", old=old.item(item, schema))
    return errors


def json_type(value: Any) -> str:
    """Return the schema's name for the type of a JSON value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "integer" if value.is_integer() else "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def _node(value: Any, schema: Schema, field: str) -> Iterator[FieldError]:
    """Return the errors of the value itself, without children."""
    yield from _type(value, schema, field)
    if schema.get("enum") is not None and not (value is None and schema.get("nullable")):
        allowed = schema["enum"]
        if not any(choice == value and json_type(choice) == json_type(value) for choice in allowed):
            yield not_supported(field, value, allowed)
    if isinstance(value, str):
        yield from _string(value, schema, field)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _number(value, schema, field)
    elif isinstance(value, list):
        yield from _array(value, schema, field)
    elif isinstance(value, dict):
        yield from _object(value, schema, field)


def _type(value: Any, schema: Schema, field: str) -> Iterator[FieldError]:
    expected = ["integer", "string"] if schema.get("x-kubernetes-int-or-string") else [schema.get("type")]
    actual = json_type(value)
    if expected == [None] or actual in expected or (actual == "integer" and "number" in expected):
        return
    if actual == "null" and schema.get("nullable"):
        return
    words = ",".join(word for word in expected if word)
    yield type_invalid(field, actual, f'{_subject(field)} must be of type {words}: "{actual}"')


def _subject(field: str) -> str:
    return f"{field} in body" if field else '""'


def _string(value: str, schema: Schema, field: str) -> Iterator[FieldError]:
    pattern = schema.get("pattern")
    if "maxLength" in schema and len(value) > schema["maxLength"]:
        yield too_long(field, schema["maxLength"])
    elif len(value) < schema.get("minLength", 0):
        yield invalid(field, value, f"{_subject(field)} should be at least {schema['minLength']} chars long")
    elif pattern and not _compiled(pattern).search(value):
        yield invalid(field, value, f"{_subject(field)} should match '{pattern}'")
    if schema.get("format") == "date-time" and not _is_time(value):
        detail = f"{_subject(field)} must be of type date-time: {go_value(value)}"
        yield type_invalid(field, value, detail)


def _is_time(value: str) -> bool:
    """Return whether a text is an RFC 3339 time; other formats are documentation."""
    if not _DATE_TIME.fullmatch(value):
        return False
    try:
        datetime.fromisoformat(value.upper())
    except ValueError:
        return False
    return True


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern; Go's `$` is the end of the text, Python's also matches before a final newline."""
    return re.compile(re.sub(r"(?<!\\)\$$", r"\\Z", pattern), re.ASCII)


def _number(value: float, schema: Schema, field: str) -> Iterator[FieldError]:
    subject = _subject(field)
    if "maximum" in schema and value > schema["maximum"]:
        yield invalid(field, value, f"{subject} should be less than or equal to {go_value(schema['maximum'])}")
    if "minimum" in schema and value < schema["minimum"]:
        yield invalid(field, value, f"{subject} should be greater than or equal to {go_value(schema['minimum'])}")


def _array(value: list[Any], schema: Schema, field: str) -> Iterator[FieldError]:
    if len(value) < schema.get("minItems", 0):
        yield invalid(field, len(value), f"{_subject(field)} should have at least {schema['minItems']} items")
    if "maxItems" in schema and len(value) > schema["maxItems"]:
        yield too_many(field, len(value), schema["maxItems"])


def _object(value: Mapping[str, Any], schema: Schema, field: str) -> Iterator[FieldError]:
    for key in schema.get("required") or ():
        if key not in value:
            yield required(_child(field, key))


def _child(field: str, key: str) -> str:
    return f"{field}.{key}" if field else key


def _properties(value: Mapping[str, Any], schema: Schema, field: str, old: Old) -> Iterator[FieldError]:
    known = schema.get("properties") or {}
    rest = schema.get("additionalProperties")
    before = old.value if old.present and isinstance(old.value, dict) else {}
    for key, item in value.items():
        if before.get(key) is item and item is not None:
            continue
        below = known.get(key, rest if isinstance(rest, dict) else None)
        if below is not None:
            yield from validate(item, below, field=_child(field, key), old=old.child(key))
