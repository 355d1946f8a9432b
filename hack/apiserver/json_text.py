"""The JSON parser of request bodies."""

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
