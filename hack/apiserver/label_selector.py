"""The grammar of label selectors: `a=b,c!=d,e in (f,g),h notin (i),j,!k`."""

from __future__ import annotations

import re

from hack.apiserver.schema.names import label_value, qualified_name
from hack.apiserver.selectors import Requirement
from hack.apiserver.status import bad_request

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
