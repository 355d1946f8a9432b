"""Whether the schema in a CustomResourceDefinition is one that kube-apiserver takes: structural, and sound CEL rules.

After apiextensions' validation in 1.35, without its cost estimates; celcheck.py says what of a CEL rule is checked.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from hack.apiserver.schema.cel_check import validate_rule
from hack.apiserver.schema.default_check import validate_default
from hack.apiserver.schema.field_error import FieldError, forbidden, invalid, not_supported, required

if TYPE_CHECKING:
    from collections.abc import Iterator

Schema = dict[str, Any]

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_LIST_TYPES = ("atomic", "set", "map")
#: Keywords of JSON schema that a CRD cannot use.
_UNSUPPORTED = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
#: Keywords that cannot stand inside allOf, anyOf, oneOf and not, with what is said about them there.
_NOT_IN_LOGIC = {
    "type": "must be empty to be structural",
    "additionalProperties": "must be undefined to be structural",
    "default": "must be undefined to be structural",
    "title": "must be empty to be structural",
    "description": "must be empty to be structural",
    "nullable": "must be false to be structural",
    "x-kubernetes-preserve-unknown-fields": "must be false to be structural",
    "x-kubernetes-list-type": "must be undefined to be structural",
    "x-kubernetes-validations": "must be empty to be structural",
}
_REGEXP_FAULTS = {
    "missing ), unterminated subpattern": "missing closing )",
    "unterminated character set": "missing closing ]",
}


def validate_structural(schema: Schema, field: str) -> Iterator[FieldError]:
    """Findings about the schema of a whole object."""
    if not schema.get("type"):
        yield required(f"{field}.type", "must not be empty at the root")
    elif schema["type"] != "object":
        yield invalid(f"{field}.type", schema["type"], "must be object at the root")
    metadata = (schema.get("properties") or {}).get("metadata") or {}
    if (metadata.get("properties") or {}).keys() - {"name", "generateName"}:
        detail = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        yield forbidden(f"{field}.properties[metadata]", detail)
    yield from _node(schema, field)


def _keywords(schema: Schema, field: str) -> Iterator[FieldError]:
    """Findings about single keywords of a node."""
    if schema.get("type") and schema["type"] not in _TYPES:
        yield not_supported(f"{field}.type", schema["type"], _TYPES)
    for keyword in _UNSUPPORTED:
        if keyword in schema:
            yield forbidden(f"{field}.{keyword}", f"{keyword} is not supported")
    if schema.get("uniqueItems"):
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden(f"{field}.uniqueItems", detail)
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        yield invalid(f"{field}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined")  # noqa: FBT003
    if "pattern" in schema:
        yield from _pattern(schema["pattern"], field)
    if schema.get("default") is not None:
        yield from validate_default(schema, f"{field}.default")


def _node(schema: Schema, field: str, loose: str = "") -> Iterator[FieldError]:
    """Findings about a node; `loose` is the list above it whose items have no old values to compare with."""
    yield from _keywords(schema, field)
    yield from _list_type(schema, field)
    for index, rule in enumerate(schema.get("x-kubernetes-validations") or ()):
        yield from validate_rule(rule, schema, f"{field}.x-kubernetes-validations[{index}]", loose=loose)
    either = bool(schema.get("x-kubernetes-int-or-string"))
    for keyword in ("allOf", "anyOf", "oneOf"):
        for index, part in enumerate(schema.get(keyword) or ()):
            yield from _logic(part, f"{field}.{keyword}[{index}]", either=either)
    if schema.get("not"):
        yield from _logic(schema["not"], f"{field}.not")
    yield from _below(schema, field, loose)


def _below(schema: Schema, field: str, loose: str) -> Iterator[FieldError]:
    known, rest, items = schema.get("properties"), schema.get("additionalProperties"), schema.get("items")
    if known and rest:
        detail = "additionalProperties and properties are mutual exclusive"
        yield forbidden(f"{field}.additionalProperties", detail)
    for name, part in (known or {}).items():
        yield from _typed(part, f"{field}.properties[{name}]", "must not be empty for specified object fields", loose)
    if isinstance(rest, dict):
        yield from _typed(rest, f"{field}.additionalProperties", "must not be empty for specified object fields", loose)
    if isinstance(items, dict):
        correlated = schema.get("x-kubernetes-list-type") == "map"
        below = loose if correlated else loose or field
        yield from _typed(items, f"{field}.items", "must not be empty for specified array items", below)
    elif schema.get("type") == "array":
        yield required(f"{field}.items", "must be specified")


def _typed(schema: Schema, field: str, untyped: str, loose: str) -> Iterator[FieldError]:
    free = schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    if not schema.get("type") and not free:
        yield required(f"{field}.type", untyped)
    yield from _node(schema, field, loose)


def _pattern(pattern: str, field: str) -> Iterator[FieldError]:
    try:
        re.compile(pattern)
    except re.error as error:
        fault = f"error parsing regexp: {_REGEXP_FAULTS.get(error.msg, error.msg)}: `{pattern}`"
        yield invalid(f"{field}.pattern", pattern, f"must be a valid regular expression, but isn't: {fault}")


def _logic(schema: Schema, field: str, *, either: bool = False) -> Iterator[FieldError]:
    for keyword, detail in _NOT_IN_LOGIC.items():
        int_or_string = either and keyword == "type" and schema.get("type") in {"integer", "string"}
        if schema.get(keyword) and not int_or_string:
            yield forbidden(f"{field}.{keyword}", detail)
    for name, part in (schema.get("properties") or {}).items():
        yield from _logic(part, f"{field}.properties[{name}]")


def _list_type(schema: Schema, field: str) -> Iterator[FieldError]:
    kind, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys")
    where = f"{field}.x-kubernetes-list-type"
    if kind is not None and kind not in _LIST_TYPES:
        yield not_supported(where, kind, _LIST_TYPES)
    if kind is not None and schema.get("type") != "array":
        yield invalid(f"{field}.type", schema.get("type", ""), "must be array if x-kubernetes-list-type is specified")
    if keys and kind != "map":
        yield invalid(where, kind or "", "must be map if x-kubernetes-list-map-keys is non-empty")
    items = schema.get("items") or {}
    which = {"object": "map", "array": "list"}.get(items.get("type", ""))
    if kind == "set" and which and items.get(f"x-kubernetes-{which}-type") != "atomic":
        given = items.get(f"x-kubernetes-{which}-type")
        detail = "must be atomic as item of a list with x-kubernetes-list-type=set"
        yield invalid(f"{field}.items.x-kubernetes-{which}-type", given, detail)
    if kind == "map":
        yield from _map_keys(schema, keys or [], field)


def _map_keys(schema: Schema, keys: list[str], field: str) -> Iterator[FieldError]:
    where = f"{field}.x-kubernetes-list-map-keys"
    if not keys:
        yield required(where, "must not be empty if x-kubernetes-list-type is map")
    items = schema.get("items") or {}
    known = items.get("properties") or {}
    for key in keys:
        if key not in known:
            yield invalid(where, keys, "entries must all be names of item properties")
        elif key not in (items.get("required") or ()) and "default" not in known[key]:
            detail = (
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
            )
            yield required(f"{field}.items.properties[{key}].default", detail)
