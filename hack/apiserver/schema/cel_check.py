"""Whether the CEL rules in a CustomResourceDefinition's schema can be run.

They must parse, select only fields that the schema has, and call only functions that CEL or Kubernetes has. Types of
expressions are not checked, nor is estimated what a rule might cost.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from hack.apiserver.expression import ExpressionError, compiled, uses
from hack.apiserver.schema.field_error import FieldError, invalid, not_supported, required

if TYPE_CHECKING:
    from collections.abc import Iterator

Schema = dict[str, Any]

_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_SELECTION = re.compile(r"(?<![\w.])(?:self|oldSelf)((?:\.[A-Za-z_]\w*)+)(\s*\()?")
_LITERAL = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")
_CALL = re.compile(r"(?<![\w.])([A-Za-z_]\w*)\s*\(")
#: The functions that are called without a dot before them, in CEL and in the libraries of Kubernetes.
_FUNCTIONS = frozenset(
    [
        "bool",
        "bytes",
        "cidr",
        "double",
        "duration",
        "dyn",
        "format",
        "getDate",
        "has",
        "in",
        "int",
        "ip",
        "isCIDR",
        "isIP",
        "isQuantity",
        "isSemver",
        "isURL",
        "list",
        "map",
        "matches",
        "max",
        "min",
        "optional",
        "quantity",
        "semver",
        "sets",
        "size",
        "string",
        "timestamp",
        "type",
        "uint",
        "url",
    ]
)


def validate_rule(rule: dict[str, Any], schema: Schema, field: str, *, loose: str) -> Iterator[FieldError]:
    """Findings about one rule at a node; `loose` is the list above it whose items have no old values, if any."""
    source = (rule.get("rule") or "").strip()
    if not source:
        yield required(f"{field}.rule", "rule is not specified")
        return
    yield from _texts(rule, field)
    path = rule.get("fieldPath")
    if path and not _leads_somewhere(path, schema):
        yield invalid(f"{field}.fieldPath", path, "must be a valid path")
    yield from _compiled(rule, source, schema, field, loose)


def _compiled(rule: dict[str, Any], source: str, schema: Schema, field: str, loose: str) -> Iterator[FieldError]:
    try:
        compiled(source)
        old = uses(source, "oldSelf")
    except ExpressionError as error:
        yield invalid(f"{field}.rule", _shown(rule), f"compilation failed: {_complaint(error)}")
        return
    if "optionalOldSelf" in rule and not old:
        detail = "may not be set if oldSelf is not used in rule"
        yield invalid(f"{field}.optionalOldSelf", rule["optionalOldSelf"], detail)
    if old and loose:
        detail = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {loose}"
        yield invalid(f"{field}.rule", source, detail)
    for column, fault in _mistakes(source, schema):
        shown = f"ERROR: <input>:1:{column}: {fault}\n | {source}\n | {'.' * (column - 1)}^"
        yield invalid(f"{field}.rule", _shown(rule), f"compilation failed: {shown}")
    message = rule.get("messageExpression")
    try:
        compiled(message or "''")
    except ExpressionError as error:
        detail = f"messageExpression compilation failed: {_complaint(error)}"
        yield invalid(f"{field}.messageExpression", _shown(rule), detail)


def _shown(rule: dict[str, Any]) -> dict[str, Any]:
    """The rule as the real server prints it."""
    texts = {"Rule": "rule", "Message": "message", "MessageExpression": "messageExpression"}
    shown: dict[str, Any] = {name: rule.get(key, "") for name, key in texts.items()}
    shown |= {"Reason": rule.get("reason"), "FieldPath": rule.get("fieldPath", "")}
    return shown | {"OptionalOldSelf": rule.get("optionalOldSelf")}


def _complaint(error: ExpressionError) -> str:
    """What the parser says, in the form of the real server's."""
    text = str(error)
    return text[max(text.find("ERROR: "), 0) :].replace("\n| ", "\n | ")


def _texts(rule: dict[str, Any], field: str) -> Iterator[FieldError]:
    message = rule.get("message")
    if message is not None and not message.strip():
        yield invalid(f"{field}.message", message, "must be non-empty if specified")
    if message and "\n" in message.strip():
        yield invalid(f"{field}.message", message, "must not contain line breaks")
    if not message and "\n" in rule["rule"].strip():
        yield required(f"{field}.message", "message must be specified if rule contains line breaks")
    if rule.get("reason") and rule["reason"] not in _REASONS:
        yield not_supported(f"{field}.reason", rule["reason"], _REASONS)


def _leads_somewhere(path: str, schema: Schema) -> bool:
    node: Any = schema
    for dotted, quoted in re.findall(r"\.([A-Za-z_][\w-]*)|\['([^']*)'\]", path):
        node = (node.get("properties") or {}).get(dotted or quoted)
        if node is None:
            return False
    return path.startswith((".", "["))


def _mistakes(source: str, schema: Schema) -> Iterator[tuple[int, str]]:
    """Where a rule names what is not there, counted from 1, and what is wrong."""
    plain = _LITERAL.sub(lambda match: "'" + " " * (len(match[0]) - 2) + "'", source)
    for match in _CALL.finditer(plain):
        if match[1] not in _FUNCTIONS:
            yield match.end(), f"undeclared reference to '{match[1]}' (in container '')"
    for match in _SELECTION.finditer(plain):
        names = match[1].strip(".").split(".")
        if match[2]:
            names.pop()
        column, node = match.start(1) + 1, schema
        for name in names:
            known = node.get("properties")
            if not known:
                break
            node = (
                known.get(re.sub(r"^__(\w+?)__$", r"\1", name)) or known.get(name) or known.get(_unescaped(name)) or {}
            )
            if not node and name not in {"metadata", "apiVersion", "kind"}:
                yield column, f"undefined field '{name}'"
                break
            column += len(name) + 1


def _unescaped(name: str) -> str:
    for text, character in (("__dot__", "."), ("__dash__", "-"), ("__slash__", "/"), ("__underscores__", "__")):
        name = name.replace(text, character)
    return name
