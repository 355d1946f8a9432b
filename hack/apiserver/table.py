"""The Table form of objects, which kubectl prints.

Columns come from the row: a CustomResourceDefinition's additionalPrinterColumns, or those of builtin.yaml for built-in
kinds. Without any, name and age are shown.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from hack.apiserver.builtin import AGE, BUILTIN_AGE, NAME
from hack.apiserver.expression import ExpressionError, evaluate
from hack.apiserver.jsonpath import find

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hack.apiserver.admission import Object
    from hack.apiserver.resources import Column, Row


def render(
    row: Row, objects: Sequence[Object], *, metadata: dict[str, Any], include_object: str, columns: bool, now: datetime
) -> Object:
    """Return a meta.k8s.io/v1 Table of the objects.

    `metadata` is the ListMeta. `include_object` is None, Metadata (the default) or Object. `columns` is False from the
    second event of a watch on, where definitions are omitted.
    """
    shown = row.columns or (AGE if row.custom else BUILTIN_AGE,)
    if all(column.name != NAME.name for column in shown):
        shown = (NAME, *shown)
    table: Object = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
    table["columnDefinitions"] = [_definition(column) for column in shown] if columns else []
    table["rows"] = [
        {
            "cells": [cell(column, item, now) for column in shown],
            "object": _included(item, include_object),
        }
        for item in objects
    ]
    return table


def _definition(column: Column) -> dict[str, Any]:
    path = f"Custom resource definition column (in JSONPath format): {column.json_path}"
    return {
        "name": column.name,
        "type": column.declared or column.type,
        "format": column.format,
        "description": column.description or path,
        "priority": column.priority,
    }


def _included(item: Object, include_object: str) -> Object | None:
    if include_object == "None":
        return None
    if include_object == "Object":
        return item
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": item["metadata"]}


def cell(column: Column, item: Object, now: datetime) -> Any:
    """Return the value of a column for an object; None without one."""
    value = _value(column, item)
    shown = None if value is None else _shown(column.type, value, now)
    return column.absent if shown is None or (shown == "" and column.absent is not None) else shown


def _shown(kind: str, value: Any, now: datetime) -> Any:
    if kind == "duration":
        return _duration(value, now)
    if kind == "date":
        return age(value, now) if isinstance(value, str) else None
    if kind == "string":
        return _text(value)
    return _typed(kind, value)


def _value(column: Column, item: Object) -> Any:
    if column.json_path.startswith("="):
        try:
            return evaluate(column.json_path[1:], {"self": item})
        except ExpressionError:
            return None
    found = find(column.json_path, item)
    return found[0] if found else None


def _text(value: Any) -> str:
    """Format like JSONPath: plain strings, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def _typed(kind: str, value: Any) -> Any:
    """Return the value if it has its column's type."""
    if kind == "boolean":
        return value if isinstance(value, bool) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if kind == "integer" else value


def _duration(status: Any, now: datetime) -> str | None:
    """Return the duration from a status' startTime to its completionTime, or to now."""
    if not isinstance(status, dict) or not status.get("startTime"):
        return None
    if not status.get("completionTime"):
        return age(status["startTime"], now)
    return human_duration(_seconds(status["startTime"], status["completionTime"]))


def _seconds(start: str, end: str) -> int:
    return int((datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds())


_MINUTE = 60
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR
_YEAR = 365 * _DAY

#: Limit in seconds, the larger unit and the smaller one, if shown. Beyond the last limit only years are shown.
_STEPS = (
    (2 * _MINUTE, (1, "s"), None),
    (10 * _MINUTE, (_MINUTE, "m"), (1, "s")),
    (3 * _HOUR, (_MINUTE, "m"), None),
    (8 * _HOUR, (_HOUR, "h"), (_MINUTE, "m")),
    (2 * _DAY, (_HOUR, "h"), None),
    (8 * _DAY, (_DAY, "d"), (_HOUR, "h")),
    (2 * _YEAR, (_DAY, "d"), None),
    (8 * _YEAR, (_YEAR, "y"), (_DAY, "d")),
)


def age(timestamp: object, now: datetime) -> str:
    """Return how long ago an RFC 3339 time was; `<unknown>` without one."""
    if not timestamp:
        return "<unknown>"
    try:
        moment = datetime.fromisoformat(str(timestamp))
    except ValueError:
        return "<invalid>"
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return human_duration(int((now - moment).total_seconds()))


def human_duration(seconds: int) -> str:
    """Return a duration in at most two units, as apimachinery's HumanDuration; -1 counts as 0."""
    if seconds < -1:
        return "<invalid>"
    seconds = max(seconds, 0)
    for limit, (size, unit), below in _STEPS:
        if seconds >= limit:
            continue
        count, rest = divmod(seconds, size)
        smaller = rest // below[0] if below else 0
        return f"{count}{unit}" + (f"{smaller}{below[1]}" if below and smaller else "")
    return f"{seconds // _YEAR}y"
