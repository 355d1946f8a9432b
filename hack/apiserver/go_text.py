"""Values as Go prints and names them in refusals."""

from __future__ import annotations

from typing import Any


def shown(value: Any) -> str:
    """A JSON value as %v prints it: maps by their keys in order, no quotes anywhere."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{shown(item)}" for key, item in sorted(value.items())) + "]"
    if isinstance(value, list):
        return "[" + " ".join(shown(item) for item in value) + "]"
    if value is None:
        return "<nil>"
    return str(value).lower() if isinstance(value, bool) else str(value)


def word(value: Any) -> str:
    """What Go calls a JSON value."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"
