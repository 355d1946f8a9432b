"""Label and field selectors: those of a list or watch, and the LabelSelectors of webhooks, workloads and Plans."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hack.apiserver.schema.names import label_value, qualified_name
from hack.apiserver.status import bad_request

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hack.apiserver.admission import Object
    from hack.apiserver.resources import Row


@dataclass(frozen=True, slots=True)
class Requirement:
    """One term: an operator that compares the value of a key (None when absent) with values."""

    key: str
    #: in, notin, exists or !.
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, value: str | None) -> bool:
        """Return whether a value, or its absence, meets the term."""
        if self.operator == "exists":
            return value is not None
        if self.operator == "!":
            return value is None
        return (value is not None and value in self.values) == (self.operator == "in")


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """The label and field selectors of a request."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.labels or self.fields)

    @property
    def single_name(self) -> str:
        """The only name that can match, when metadata.name is selected."""
        names = [term.values[0] for term in self.fields if term.key == "metadata.name" and term.operator == "in"]
        return names[0] if names else ""

    def matches(self, obj: Object) -> bool:
        """Return whether an object matches all terms."""
        if self.labels:
            labels = obj["metadata"].get("labels") or {}
            if not all(term.matches(labels.get(term.key)) for term in self.labels):
                return False
        return all(term.matches(field_text(obj, term.key)) for term in self.fields)


def field_text(obj: Object, path: str) -> str:
    """Return a field as text for field selectors; empty if absent."""
    value: Any = obj
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "false" if path == "spec.unschedulable" else ""
    return str(value)


#: A comma outside of parentheses.
_COMMA = re.compile(r",(?![^(]*\))")
_TERM = re.compile(
    r"\s*(?:(?P<absent>!\s*)?(?P<bare>[^\s=!(),<>]+)"
    r"|(?P<key>[^\s=!(),<>]+)\s*(?P<op>==|!=|=)\s*(?P<value>[^\s=!(),<>]*)"
    r"|(?P<listed>[^\s=!(),<>]+)\s+(?P<word>in|notin)\s*\((?P<values>[^()=!<>]*)\))\s*"
)


def parse_labels(text: str) -> tuple[Requirement, ...]:
    """Return the terms of a labelSelector. Raises StatusError 400."""
    return tuple(_term(part) for part in _COMMA.split(text)) if text.strip() else ()


def _term(text: str) -> Requirement:
    match = _TERM.fullmatch(text)
    if match is None:
        raise bad_request(f"unable to parse requirement: '{text}'")
    if match["bare"]:
        term = Requirement(match["bare"], "!" if match["absent"] else "exists")
    elif match["key"]:
        term = Requirement(match["key"], "notin" if match["op"] == "!=" else "in", (match["value"],))
    else:
        values = {value.strip() for value in match["values"].split(",")}
        term = Requirement(match["listed"], match["word"], tuple(sorted(values)))
    errors = [*qualified_name(term.key), *(error for value in term.values for error in label_value(value))]
    if errors:
        raise bad_request(f"unable to parse requirement: '{text}': {'; '.join(errors)}")
    return term


_FIELD_TERM = re.compile(r"([^=!]+)(==|!=|=)([^=!]*)")


def parse_fields(text: str, row: Row) -> tuple[Requirement, ...]:
    """Return the terms of a fieldSelector. Raises StatusError 400 for a field that the kind does not support."""
    return tuple(_field_term(part, row) for part in text.split(",") if part)


def _field_term(text: str, row: Row) -> Requirement:
    match = _FIELD_TERM.fullmatch(text)
    if match is None:
        raise bad_request(f"invalid selector: '{text}'; can't understand '{text}'")
    if match[1] not in {"metadata.name", "metadata.namespace", *row.selectable}:
        raise bad_request(f"field label not supported: {match[1]}")
    return Requirement(match[1], "notin" if match[2] == "!=" else "in", (match[3],))


class SelectorError(ValueError):
    """An unknown operator."""


def selects(selector: Object | None, labels: Mapping[str, str]) -> bool:
    """Report whether the labels match; None matches nothing, an empty selector everything. Raises SelectorError."""
    if selector is None:
        return False
    wanted: Mapping[str, str] = selector.get("matchLabels") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    return all(meets(one, labels) for one in selector.get("matchExpressions") or ())


def meets(expression: Object, labels: Mapping[str, str]) -> bool:
    """Report whether one requirement matches. Raises SelectorError."""
    key, operator = expression.get("key") or "", expression.get("operator") or ""
    values, value = expression.get("values") or [], labels.get(key)
    match operator:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    raise SelectorError(f"{operator!r} is not a valid label selector operator")
