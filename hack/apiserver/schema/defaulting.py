"""Defaults of a custom resource's schema, applied at writes."""

from __future__ import annotations

import copy
from typing import Any

Schema = dict[str, Any]


def apply_defaults(value: Any, schema: Schema) -> Any:
    """Return the value with every default that applies, sharing unchanged values.

    A null where the schema has a default and no `nullable` counts as absent; nulls without a default stay and are
    validated.
    """
    if isinstance(value, dict):
        return _object(value, schema)
    items = schema.get("items")
    if isinstance(value, list) and isinstance(items, dict):
        filled = [apply_defaults(item, items) for item in value]
        return value if all(new is old for new, old in zip(filled, value, strict=True)) else filled
    return value


def _object(value: dict[str, Any], schema: Schema) -> dict[str, Any]:
    filled = dict(value)
    for key, below in (schema.get("properties") or {}).items():
        absent = key not in value or (value[key] is None and not below.get("nullable"))
        if absent and "default" in below:
            filled[key] = copy.deepcopy(below["default"])
        if key in filled:
            filled[key] = apply_defaults(filled[key], below)
    rest = schema.get("additionalProperties")
    if isinstance(rest, dict):
        for key in value.keys() - (schema.get("properties") or {}).keys():
            filled[key] = apply_defaults(value[key], rest)
    same = len(filled) == len(value) and all(filled[key] is value[key] for key in filled)
    return value if same else filled


def without_nulls(value: Any, schema: Schema, *, old: Any = None) -> Any:
    """Drop members that are null and not nullable; values shared with `old` are skipped."""
    if isinstance(value, list):
        below = schema.get("items")
        if not isinstance(below, dict):
            return value
        items = [without_nulls(item, below) for item in value]
        return value if all(new is item for new, item in zip(items, value, strict=True)) else items
    if not isinstance(value, dict):
        return value
    known, rest = schema.get("properties") or {}, schema.get("additionalProperties")
    before = old if isinstance(old, dict) else {}
    kept = {}
    for key, item in value.items():
        below = known.get(key, rest if isinstance(rest, dict) else None)
        if below is None or (item is not None and before.get(key) is item):
            kept[key] = item
        elif item is not None or below.get("nullable"):
            kept[key] = without_nulls(item, below, old=before.get(key))
    return value if len(kept) == len(value) and all(kept[key] is value[key] for key in kept) else kept
