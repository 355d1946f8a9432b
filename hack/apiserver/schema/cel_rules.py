"""Runs the x-kubernetes-validations rules of a custom resource's schema.

`self` is the value at the rule's node, `oldSelf` what an update replaces there. A rule that reads oldSelf is a
transition rule: it runs only where there is an old value, unless it sets optionalOldSelf, which makes oldSelf an
optional. A rule that does not read it is not held against values that an update leaves as they were.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any

from cel import OptionalValue

from hack.apiserver.expression import ExpressionError, evaluate, uses
from hack.apiserver.schema.correlation import ABSENT, Old
from hack.apiserver.schema.field_error import OMITTED, Fault, FieldError

if TYPE_CHECKING:
    from collections.abc import Iterator

Schema = dict[str, Any]

#: The longest text that a messageExpression may give.
MESSAGE_SIZE = 5 * 1024

_FAULTS = {
    "FieldValueForbidden": Fault.FORBIDDEN,
    "FieldValueRequired": Fault.REQUIRED,
    "FieldValueDuplicate": Fault.DUPLICATE,
}
#: Words that CEL reserves: a field of such a name is reached as `__name__`.
_RESERVED = frozenset(
    [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ]
)
_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_ESCAPED = re.compile(r"__|[.\-/]")


def validate_rules(value: Any, schema: Schema, *, field: str = "", old: Old = ABSENT) -> Iterator[FieldError]:
    """Findings of all rules in the schema; the value must have passed the schema itself without a blocking fault."""
    if value is None:
        return
    rules = schema.get("x-kubernetes-validations")
    if rules:
        shown = escaped(value, schema)
        before = escaped(old.value, schema) if old.present and old.value is not None else None
        for rule in rules:
            yield from _run(rule, value, schema, field, old, shown, before)
    if isinstance(value, dict):
        yield from _object(value, schema, field, old)
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        for index, item in enumerate(value):
            below = schema["items"]
            yield from validate_rules(item, below, field=f"{field}[{index}]", old=old.item(item, schema))


def _object(value: dict[str, Any], schema: Schema, field: str, old: Old) -> Iterator[FieldError]:
    known = schema.get("properties") or {}
    rest = schema.get("additionalProperties")
    for key, item in value.items():
        if key in known:
            yield from validate_rules(item, known[key], field=f"{field}.{key}" if field else key, old=old.child(key))
        elif isinstance(rest, dict):
            yield from validate_rules(item, rest, field=f"{field}[{key}]", old=old.child(key))


def _run(  # a rule, where it stands, and what it sees
    rule: dict[str, Any], value: Any, schema: Schema, field: str, old: Old, shown: Any, before: Any
) -> Iterator[FieldError]:
    source = rule.get("rule", "").strip()
    if not source:
        return
    kind = schema.get("type")
    try:
        transition = uses(source, "oldSelf")
        if not transition and old.same(value):
            return
        optional = bool(rule.get("optionalOldSelf"))
        if transition and before is None and not optional:
            return
        variables = {"self": shown, "oldSelf": _optional(before) if optional else before}
        verdict = evaluate(source, variables)
    except ExpressionError as error:
        text = f"{error} evaluating rule: {_named(rule)}"
        yield FieldError(fault=Fault.INVALID, field=field, value=kind, detail=text)
        return
    if verdict is True:
        return
    yield _finding(rule, value, field, _message(rule, variables))


def _optional(value: Any) -> OptionalValue:
    return OptionalValue.none() if value is None else OptionalValue.of(value)


def _named(rule: dict[str, Any]) -> str:
    return str(rule.get("message") or rule.get("rule", "")).strip()


def _message(rule: dict[str, Any], variables: dict[str, Any]) -> str:
    """What messageExpression gives, if it gives one good line; else message; else the rule itself."""
    source = rule.get("messageExpression")
    if source:
        try:
            text = evaluate(source, variables)
        except ExpressionError:
            text = ""
        text = text.strip() if isinstance(text, str) else ""
        if text and len(text.encode()) <= MESSAGE_SIZE and not re.search(r"[\r\n]", text):
            return text
    return str(rule["message"]).strip() if rule.get("message") else f"failed rule: {_named(rule)}"


def _finding(rule: dict[str, Any], value: Any, field: str, text: str) -> FieldError:
    where = field + str(rule.get("fieldPath") or "")
    fault = _FAULTS.get(rule.get("reason", ""), Fault.INVALID)
    shown = OMITTED if isinstance(value, dict | list) else value
    detail = "" if fault is Fault.DUPLICATE else text
    return FieldError(fault=fault, field=where.removeprefix("."), value=shown, detail=detail)


def escaped(value: Any, schema: Schema) -> Any:
    """The value as CEL sees it: property names as identifiers, numbers as doubles, times as timestamps."""
    if isinstance(value, dict):
        known = schema.get("properties") or {}
        rest = schema.get("additionalProperties")
        below = rest if isinstance(rest, dict) else {}
        return {
            _escape(key) if key in known else key: escaped(item, known.get(key, below)) for key, item in value.items()
        }
    if isinstance(value, list):
        return [escaped(item, schema.get("items") or {}) for item in value]
    if schema.get("type") == "number" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if schema.get("format") == "date-time" and isinstance(value, str):
        return datetime.fromisoformat(value)
    return value


def _escape(name: str) -> str:
    if name in _RESERVED:
        return f"__{name}__"
    return _ESCAPED.sub(lambda match: _ESCAPES[match[0]], name)
