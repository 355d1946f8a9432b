"""JSON in request bodies."""

from __future__ import annotations

import json
from typing import Any


class JsonError(ValueError):
    """The bytes are not JSON."""


def read(body: bytes) -> Any:
    """Return the value. Raises JsonError."""
    try:
        return json.loads(body.decode("utf-8", "replace"))
    except json.JSONDecodeError as error:
        raise JsonError(f"invalid JSON: {error}") from error


def json_type(value: Any) -> str:
    """Return the name of a JSON type in Go's decoder."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"
