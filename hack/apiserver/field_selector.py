"""The grammar of field selectors, and the fields that a kind supports."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hack.apiserver.selectors import Requirement
from hack.apiserver.status import bad_request

if TYPE_CHECKING:
    from hack.apiserver.resources import Row

_TERM_END = re.compile(r"(?<!\\),")
_TERM = re.compile(r"^(?P<key>.*?)(?P<op>==|!=|=)(?P<value>.*)$", re.DOTALL)
_ESCAPE = re.compile(r"\\(.?)", re.DOTALL)
_OPERATORS = {"=": "in", "==": "in", "!=": "notin"}


def parse_fields(text: str, row: Row) -> tuple[Requirement, ...]:
    """Return the terms of a fieldSelector. Raises StatusError 400 for a field that the kind does not support."""
    terms = [_term(part) for part in _TERM_END.split(text) if part] if text else []
    return tuple(_offered(term, row) for term in terms)


def _term(text: str) -> Requirement:
    match = _TERM.match(text)
    if match is None:
        raise bad_request(f"invalid selector: '{text}'; can't understand '{text}'")
    return Requirement(match["key"], _OPERATORS[match["op"]], (_unescaped(match["value"]),))


def _unescaped(value: str) -> str:
    for found in _ESCAPE.findall(value):
        if found not in {"\\", ",", "="}:
            raise bad_request(f"invalid field selector: invalid escape sequence: \\{found}")
    if "=" in _ESCAPE.sub("", value):
        raise bad_request(f"invalid field selector: unescaped character in value: {ord('=')}")
    return _ESCAPE.sub(r"\1", value)


def _offered(term: Requirement, row: Row) -> Requirement:
    """Return the term with the path of the stored field. Raises StatusError 400."""
    common = {"metadata.name", "metadata.namespace"}
    if row.has_field_selectors and not row.resource.namespaced:
        common = {"metadata.name"}
    if term.key not in {*common, *row.selectable}:
        raise bad_request(_refusal(term.key, row))
    return term


def _refusal(key: str, row: Row) -> str:
    if row.unselectable:
        return row.unselectable.format(key)
    if row.has_field_selectors:
        return f"field label not supported: {key}"
    return f'"{key}" is not a known field selector: only "metadata.name", "metadata.namespace"'
