"""The features of CustomResourceDefinitions that this server supports, without the other checks of kube-apiserver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hack.apiserver.expression import ExpressionError, compiled
from hack.apiserver.jsonpath import PathError
from hack.apiserver.jsonpath import compiled as compiled_path
from hack.apiserver.schema.field_error import UNOFFERED, FieldError, forbidden, invalid, required

if TYPE_CHECKING:
    from collections.abc import Iterator

Object = dict[str, Any]

#: The keywords that validation, pruning and defaulting implement; without effect: description, title, example.
KEYWORDS = frozenset(
    [
        "additionalProperties",
        "default",
        "description",
        "enum",
        "example",
        "format",
        "items",
        "maxItems",
        "maxLength",
        "maximum",
        "minItems",
        "minLength",
        "minimum",
        "nullable",
        "pattern",
        "properties",
        "required",
        "title",
        "type",
        "x-kubernetes-int-or-string",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-list-type",
        "x-kubernetes-map-type",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-validations",
    ]
)
_RULE_KEYWORDS = frozenset({"rule", "message", "reason", "fieldPath"})
_SUBRESOURCES = frozenset({"status"})


def definition(new: Object, old: Object | None) -> Iterator[FieldError]:
    """Yield the errors of a CustomResourceDefinition."""
    spec = new.get("spec") or {}
    if old is not None and spec == old.get("spec"):
        return
    names = spec.get("names") or {}
    if new["metadata"].get("name") != f"{names.get('plural', '')}.{spec.get('group', '')}":
        yield invalid("metadata.name", new["metadata"].get("name"), 'must be spec.names.plural+"."+spec.group')
    versions = spec.get("versions") or []
    if len(versions) != 1:
        yield forbidden("spec.versions", f"more or less than one version is {UNOFFERED}")
    for version in versions:
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        where = "spec.validation.openAPIV3Schema"
        yield from [required(where)] if schema is None else _schema(schema, where)
        for name in (version.get("subresources") or {}).keys() - _SUBRESOURCES:
            yield forbidden(f"spec.subresources.{name}", UNOFFERED)
        for index, column in enumerate(version.get("additionalPrinterColumns") or ()):
            yield from _column(column, f"spec.additionalPrinterColumns[{index}]")


def _schema(schema: Object, field: str) -> Iterator[FieldError]:
    for keyword in sorted(schema.keys() - KEYWORDS):
        yield forbidden(f"{field}.{keyword}", UNOFFERED)
    for index, rule in enumerate(schema.get("x-kubernetes-validations") or ()):
        yield from _rule(rule, f"{field}.x-kubernetes-validations[{index}]")
    for name, part in (schema.get("properties") or {}).items():
        yield from _schema(part, f"{field}.properties[{name}]")
    for keyword in ("items", "additionalProperties"):
        if isinstance(schema.get(keyword), dict):
            yield from _schema(schema[keyword], f"{field}.{keyword}")


def _rule(rule: Object, field: str) -> Iterator[FieldError]:
    for keyword in sorted(rule.keys() - _RULE_KEYWORDS):
        yield forbidden(f"{field}.{keyword}", UNOFFERED)
    try:
        compiled(rule.get("rule") or "")
    except ExpressionError as error:
        yield invalid(f"{field}.rule", rule.get("rule"), f"compilation failed: {error}")


def _column(column: Object, field: str) -> Iterator[FieldError]:
    try:
        compiled_path(column.get("jsonPath") or "")
    except PathError as error:
        yield invalid(f"{field}.JSONPath", column.get("jsonPath"), f"is an invalid path: {error}")
