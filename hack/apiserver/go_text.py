"""JSON values as Go prints them in error messages."""

from __future__ import annotations

from typing import Any


def shown(value: Any) -> str:
    """Format a JSON value like %v: maps sorted by key, without quotes."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{shown(item)}" for key, item in sorted(value.items())) + "]"
    if isinstance(value, list):
        return "[" + " ".join(shown(item) for item in value) + "]"
    if value is None:
        return "<nil>"
    return str(value).lower() if isinstance(value, bool) else str(value)


def json_type(value: Any) -> str:
    """Return the name of a JSON type in Go's decoder."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"
