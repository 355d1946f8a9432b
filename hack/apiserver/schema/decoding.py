"""Decoder of built-in kinds, as in Go: refuses wrong types, drops and reports unknown fields.

The result is what Go would encode: without nulls and empty members, and with those that Go never omits.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING, Any

from hack.apiserver.json_text import json_type
from hack.apiserver.schema.times import TimeError, rewritten

if TYPE_CHECKING:
    from hack.apiserver.schema.go_types import Field, Type

Json = Any

_BOUNDS = {"int32": 2**31, "int64": 2**63}
_QUANTITY = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?\d+)?")
_QUANTITY_TEXT = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"


class DecodingError(Exception):
    """A value does not fit its field; formatted like Go's errors."""

    def __init__(self, text: str, kind: str = "") -> None:
        super().__init__(text)
        self.text = text
        #: The expected Go type; empty if the text is complete.
        self.kind = kind
        #: The innermost struct, and the fields that lead to the value.
        self.struct = ""
        self.path: list[str] = []

    def __str__(self) -> str:
        if not self.kind:
            return self.text
        where = ".".join([self.struct, *self.path])
        return f"json: cannot unmarshal {self.text} into Go struct field {where} of type {self.kind}"


def decode(value: Json, kind: Type, *, unknown: list[str], old: Json = None) -> Json:
    """Return the value as Go would encode it, sharing unchanged values; add paths of unknown fields to `unknown`.

    Values shared with `old`, which was decoded before, are skipped. Raises DecodingError.
    """
    if kind.form == "struct":
        return _struct(value, kind, unknown, old if isinstance(old, dict) else {})
    if kind.form == "list":
        return _list(value, kind, unknown)
    if kind.form == "map":
        return _map(value, kind, unknown)
    if kind.form == "leaf":
        return _leaf(value, kind)
    if kind.form == "loose" and isinstance(value, dict) and kind.item is not None:
        return decode(value, kind.item, unknown=unknown)
    return value


def completed(value: Json, kind: Type) -> Json:
    """Return the object with the top-level members that Go never omits; the same object when it has them."""
    missing = {field.name: field.empty() for field in kind.shown if field.name not in value}
    return value | missing if missing else value


def _struct(value: Json, kind: Type, unknown: list[str], old: dict[str, Json]) -> Json:
    if not isinstance(value, dict):
        raise DecodingError(json_type(value), kind.name)
    result: dict[str, Json] = {}
    unchanged = 0
    for key, item in value.items():
        field = kind.fields.get(key)
        if field is None:
            unknown.append(key)
        elif item is not None:
            new = item if old.get(key) is item else _member(item, field, kind, unknown, old.get(key))
            if new or not field.droppable:
                result[key] = new
                unchanged += new is item
    for field in kind.shown:
        if field.name not in result:
            result[field.name] = field.empty()
    return value if unchanged == len(value) == len(result) else result


def _member(item: Json, field: Field, kind: Type, unknown: list[str], old: Json) -> Json:
    before = len(unknown)
    try:
        new = decode(item, field.type, unknown=unknown, old=old)
    except DecodingError as error:
        error.struct = error.struct or kind.name.removeprefix("v1.")
        error.path.insert(0, field.name)
        raise
    if len(unknown) > before:
        unknown[before:] = [field.name + ("" if path[0] == "[" else ".") + path for path in unknown[before:]]
    return new


def _list(value: Json, kind: Type, unknown: list[str]) -> Json:
    if not isinstance(value, list):
        raise DecodingError(json_type(value), kind.name)
    result = []
    for index, item in enumerate(value):
        before = len(unknown)
        result.append(_item(item, kind, unknown))
        if len(unknown) > before:
            unknown[before:] = [f"[{index}].{path}" for path in unknown[before:]]
    return value if all(new is item for new, item in zip(result, value, strict=True)) else result


def _map(value: Json, kind: Type, unknown: list[str]) -> Json:
    if not isinstance(value, dict):
        raise DecodingError(json_type(value), kind.name)
    result = {}
    for key, item in value.items():
        before = len(unknown)
        result[key] = _item(item, kind, unknown)
        if len(unknown) > before:
            unknown[before:] = [f"{key}.{path}" for path in unknown[before:]]
    return value if all(result[key] is item for key, item in value.items()) else result


def _item(item: Json, kind: Type, unknown: list[str]) -> Json:
    inner = kind.item
    if inner is None:
        return item
    if item is None:
        return "" if inner.leaf == "bytes" else inner.empty()
    return decode(item, inner, unknown=unknown)


def _leaf(value: Json, kind: Type) -> Json:
    leaf = kind.leaf
    if leaf == "string":
        fits = isinstance(value, str)
    elif leaf == "bool":
        fits = isinstance(value, bool)
    elif leaf in _BOUNDS:
        fits = _whole(value, kind)
    elif leaf == "float64":
        fits = isinstance(value, int | float) and not isinstance(value, bool)
    else:
        return _special(value, leaf, kind)
    if not fits:
        raise DecodingError(json_type(value), kind.name)
    return value


def _whole(value: Json, kind: Type) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    bound = _BOUNDS[kind.leaf]
    if isinstance(value, float) or not -bound <= value < bound:
        raise DecodingError(f"number {value}", kind.name)
    return True


def _special(value: Json, leaf: str, kind: Type) -> Json:
    """Decode leaves with a custom decoder."""
    if leaf == "port":
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise DecodingError(json_type(value), "string")
        return value
    if leaf == "quantity" and isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        raise DecodingError(json_type(value), kind.name if leaf != "bytes" else "[]uint8")
    try:
        if leaf == "bytes":
            base64.b64decode(value, validate=True)
            return value
        if leaf == "quantity":
            return _quantity(value)
        return rewritten(value, fine=leaf == "microtime")
    except TimeError as error:
        raise DecodingError(str(error)) from error
    except binascii.Error as error:
        raise DecodingError("illegal base64 data") from error


def _quantity(text: str) -> str:
    """Check a quantity, which kube-apiserver also rewrites with the largest suffix."""
    if not _QUANTITY.fullmatch(text):
        raise DecodingError(f"quantities must match the regular expression '{_QUANTITY_TEXT}'")
    return text
