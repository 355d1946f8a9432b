"""Uniqueness in lists with x-kubernetes-list-type set or map."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hack.apiserver.schema.field_error import FieldError, duplicate, invalid

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Schema = dict[str, Any]


def validate_lists(value: Any, schema: Schema, *, field: str = "") -> Iterator[FieldError]:
    """Return errors of duplicates in the value and all below it, one per duplicated entry."""
    if isinstance(value, dict):
        yield from _object(value, schema, field)
    elif isinstance(value, list):
        yield from _list(value, schema, field)
        for index, item in enumerate(value):
            yield from validate_lists(item, schema.get("items") or {}, field=f"{field}[{index}]")


def _object(value: dict[str, Any], schema: Schema, field: str) -> Iterator[FieldError]:
    known = schema.get("properties") or {}
    rest = schema.get("additionalProperties")
    for key, item in value.items():
        if key in known:
            yield from validate_lists(item, known[key], field=f"{field}.{key}" if field else key)
        elif isinstance(rest, dict):
            yield from validate_lists(item, rest, field=f"{field}[{key}]")


def _list(value: list[Any], schema: Schema, field: str) -> Iterator[FieldError]:
    kind = schema.get("x-kubernetes-list-type")
    if kind == "set":
        keys: Sequence[Any] = value
    elif kind == "map":
        for index, item in enumerate(value):
            if item is not None and not isinstance(item, dict):
                yield invalid(f"{field}[{index}]", item, "must be an object for an array of list-type map")
                return
        names = schema.get("x-kubernetes-list-map-keys") or []
        keys = [{name: item[name] for name in names if name in item} if item else {} for item in value]
    else:
        return
    for index in _repeated(keys):
        yield duplicate(f"{field}[{index}]", keys[index])


def _repeated(keys: Sequence[Any]) -> Iterator[int]:
    """Return the position of the second occurrence of each repeated key."""
    seen: dict[str, int] = {}
    for index, key in enumerate(keys):
        text = json.dumps(key, sort_keys=True)
        seen[text] = seen.get(text, 0) + 1
        if seen[text] == 2:  # noqa: PLR2004  # the second appearance
            yield index
