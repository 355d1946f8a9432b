"""Evaluation of the x-kubernetes-validations rules of a custom resource's schema.

`self` is the value at the rule's node, `oldSelf` the value that an update replaces. A rule that reads oldSelf is a
transition rule: it runs only if there is an old value. Other rules skip values that an update leaves unchanged.
"""

from __future__ import annotations

import re
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from hack.apiserver.expression import ExpressionError, evaluate, uses
from hack.apiserver.schema.correlation import ABSENT, Old
from hack.apiserver.schema.field_error import OMITTED, ErrorType, FieldError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Schema = dict[str, Any]

_REASONS = {
    "FieldValueForbidden": ErrorType.FORBIDDEN,
    "FieldValueRequired": ErrorType.REQUIRED,
    "FieldValueDuplicate": ErrorType.DUPLICATE,
}
#: Every variable of a rule, and the members of it that are read one below the other, without called functions; `has`
#: reads no value.
_READ = re.compile(r"(\bhas\((?=(?:self|oldSelf)(?:\.\w+)*\)))?\b(?:self|oldSelf)\b((?:\.\w+\b(?!\())*)")
#: Ends the path of a member whose value is not read; no member has this name.
_ANY = ""


def validate_rules(value: Any, schema: Schema, *, field: str = "", old: Old = ABSENT) -> Iterator[FieldError]:
    """Yield errors of all rules in the schema; the value must be valid by the schema itself."""
    if value is None:
        return
    for rule in schema.get("x-kubernetes-validations") or ():
        yield from _run(rule, value, schema, field, old)
    if isinstance(value, dict):
        known, rest = schema.get("properties") or {}, schema.get("additionalProperties")
        for key, item in value.items():
            if key in known:
                where = f"{field}.{key}" if field else key
                yield from validate_rules(item, known[key], field=where, old=old.child(key))
            elif isinstance(rest, dict):
                yield from validate_rules(item, rest, field=f"{field}[{key}]", old=old.child(key))
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        for index, item in enumerate(value):
            yield from validate_rules(item, schema["items"], field=f"{field}[{index}]", old=old.item(item, schema))


def _run(rule: dict[str, Any], value: Any, schema: Schema, field: str, old: Old) -> Iterator[FieldError]:
    source = rule["rule"].strip()
    name = str(rule.get("message") or source).strip()
    transition = uses(source, "oldSelf")
    if (transition and (not old.present or old.value is None)) or (not transition and old.same(value)):
        return
    paths = _read_paths(source)
    variables = {"self": _typed(_pruned(value, paths), schema)}
    if transition:
        variables["oldSelf"] = _typed(_pruned(old.value, paths), schema)
    try:
        if evaluate(source, variables) is True:
            return
    except ExpressionError as error:
        text = f"{error} evaluating rule: {name}"
        yield FieldError(error_type=ErrorType.INVALID, field=field, value=schema.get("type"), detail=text)
        return
    error_type = _REASONS.get(rule.get("reason", ""), ErrorType.INVALID)
    text = name if rule.get("message") else f"failed rule: {name}"
    yield FieldError(
        error_type=error_type,
        field=(field + str(rule.get("fieldPath") or "")).removeprefix("."),
        value=OMITTED if isinstance(value, dict | list) else value,
        detail="" if error_type is ErrorType.DUPLICATE else text,
    )


@lru_cache(maxsize=1024)
def _read_paths(source: str) -> tuple[tuple[str, ...], ...]:
    """Return the members that the rule reads, each as a path; an empty path for the whole value."""
    found = _READ.findall(source)
    return tuple({(*members.split(".")[1:], *([_ANY] if is_present else [])) for is_present, members in found})


def _pruned(value: Any, paths: Iterable[tuple[str, ...]]) -> Any:
    """Return the value with only the members at these paths, because the conversion to CEL's types takes long."""
    if not isinstance(value, dict) or () in paths:
        return value
    below: dict[str, list[tuple[str, ...]]] = {}
    for first, *rest in paths:
        below.setdefault(first, []).append(tuple(rest))
    return {key: _pruned(value[key], rest) for key, rest in below.items() if key in value}


def _typed(value: Any, schema: Schema) -> Any:
    """Return the value in CEL's types: times as timestamps, numbers as doubles."""
    if isinstance(value, dict):
        known, rest = schema.get("properties") or {}, schema.get("additionalProperties")
        below = rest if isinstance(rest, dict) else {}
        return {key: _typed(item, known.get(key, below)) for key, item in value.items()}
    if isinstance(value, list):
        return [_typed(item, schema.get("items") or {}) for item in value]
    if schema.get("type") == "number" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if schema.get("format") == "date-time" and isinstance(value, str):
        return datetime.fromisoformat(value)
    return value
