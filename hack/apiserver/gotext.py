"""Values as Go prints them with %v, as some refusals show them."""

from __future__ import annotations

from typing import Any


def shown(value: Any) -> str:
    """A JSON value: maps by their keys in order, no quotes anywhere."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{shown(item)}" for key, item in sorted(value.items())) + "]"
    if isinstance(value, list):
        return "[" + " ".join(shown(item) for item in value) + "]"
    if value is None:
        return "<nil>"
    return str(value).lower() if isinstance(value, bool) else str(value)
