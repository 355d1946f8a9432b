"""Label and field selectors, with the grammar of apimachinery."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hack.apiserver.status import bad_request

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hack.apiserver.admission import Object
    from hack.apiserver.resources import Row

_SET = re.compile(r"^\s*(?P<key>[^\s!=,()<>]+)\s+(?P<op>in|notin)\s*\((?P<values>[^()]*)\)\s*$")
_COMPARE = re.compile(r"^\s*(?P<key>[^\s!=,()<>]+)\s*(?P<op>==|!=|=|>|<)\s*(?P<value>[^\s!=,()<>]*)\s*$")
_EXISTS = re.compile(r"^\s*(?P<no>!?)\s*(?P<key>[^\s!=,()<>]+)\s*$")
#: A comma outside of parentheses.
_COMMA = re.compile(r",(?![^(]*\))")
_FIELD = re.compile(r"^(?P<key>[^=!]+)(?P<op>==|!=|=)(?P<value>.*)$", re.DOTALL)
_FIELD_COMMA = re.compile(r"(?<!\\),")


@dataclass(frozen=True, slots=True)
class Requirement:
    """One term: the values are compared with that of the key, None when there is none."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, value: str | None) -> bool:
        """Whether a value, or its absence, meets the term."""
        return _OPERATORS[self.operator](value, self.values)


def _number(value: str | None) -> int | None:
    try:
        return int(value) if value is not None else None
    except ValueError:
        return None


def _greater(value: str | None, values: tuple[str, ...]) -> bool:
    number = _number(value)
    return number is not None and number > int(values[0])


def _less(value: str | None, values: tuple[str, ...]) -> bool:
    number = _number(value)
    return number is not None and number < int(values[0])


_OPERATORS: Mapping[str, Callable[[str | None, tuple[str, ...]], bool]] = {
    "in": lambda value, values: value is not None and value in values,
    "notin": lambda value, values: value is None or value not in values,
    "exists": lambda value, values: value is not None,  # noqa: ARG005
    "!": lambda value, values: value is None,  # noqa: ARG005
    ">": _greater,
    "<": _less,
}
_SAME_AS = {"=": "in", "==": "in", "!=": "notin", ">": ">", "<": "<"}


def parse_labels(text: str) -> tuple[Requirement, ...]:
    """The terms of a labelSelector. Raises StatusError 400."""
    return tuple(_label_term(part) for part in _COMMA.split(text)) if text.strip() else ()


def _label_term(text: str) -> Requirement:
    if match := _SET.match(text):
        values = tuple(value.strip() for value in match["values"].split(","))
        return Requirement(match["key"], match["op"], values)
    if match := _COMPARE.match(text):
        if match["op"] in "<>" and _number(match["value"]) is None:
            raise bad_request(
                f"unable to parse requirement: values[0][{match['key']}]: Invalid value: "
                f"\"{match['value']}\": for 'Gt', 'Lt' operators, the value must be an integer"
            )
        return Requirement(match["key"], _SAME_AS[match["op"]], (match["value"],))
    if match := _EXISTS.match(text):
        return Requirement(match["key"], "!" if match["no"] else "exists")
    raise bad_request(f"unable to parse requirement: found '{text.strip()}', expected: identifier, or ','")


def parse_fields(text: str, row: Row) -> tuple[Requirement, ...]:
    """The terms of a fieldSelector, as far as the kind offers them. Raises StatusError 400."""
    return tuple(_field_term(part, row) for part in _FIELD_COMMA.split(text) if part) if text else ()


def _field_term(text: str, row: Row) -> Requirement:
    match = _FIELD.match(text)
    if match is None:
        raise bad_request(f"invalid selector: '{text}'; can't understand '{text}'")
    key = match["key"].strip()
    if key not in {"metadata.name", "metadata.namespace", *row.selectable}:
        raise bad_request(f"field label not supported: {key}")
    for stored, shown in row.renames:
        if key == shown or key.startswith(shown + "."):
            key = stored + key.removeprefix(shown)
            break
    return Requirement(key, _SAME_AS[match["op"]], (re.sub(r"\\(.)", r"\1", match["value"]),))


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """Both kinds of selectors of a request."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.labels or self.fields)

    @property
    def single_name(self) -> str:
        """The one name that can match, when metadata.name is asked for."""
        names = [term.values[0] for term in self.fields if term.key == "metadata.name" and term.operator == "in"]
        return names[0] if names else ""

    def matches(self, obj: Object) -> bool:
        """Whether an object meets all terms."""
        if self.labels:
            labels = obj["metadata"].get("labels") or {}
            if not all(term.matches(labels.get(term.key)) for term in self.labels):
                return False
        return all(term.matches(field_text(obj, term.key)) for term in self.fields)


def field_text(obj: Object, path: str) -> str:
    """A field as field selectors compare it: as text, absent ones as the empty string."""
    value: Any = obj
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if path == "source" and isinstance(value, dict):
        value = value.get("component")
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "false" if path in {"spec.unschedulable", "spec.hostNetwork"} else ""
    return str(value)
