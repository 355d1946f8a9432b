"""The Table form of objects, which kubectl prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from hack.apiserver.admission import Object
    from hack.apiserver.resources import Row


def render(
    row: Row, objects: Sequence[Object], *, metadata: dict[str, Any], include_object: str, columns: bool, now: datetime
) -> Object:
    """A meta.k8s.io/v1 Table of the objects.

    `metadata` is the list's own (resourceVersion, continue, remainingItemCount). `include_object` is None, Metadata
    (the default) or Object. `columns` is False from the second event of a watch on, when definitions are left out.
    """
    _ = (row, include_object, columns, now)
    rows = [{"cells": [item["metadata"]["name"]], "object": item} for item in objects]
    definitions = [{"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0}]
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": definitions,
        "rows": rows,
    }
