"""Reads JSON as Go does: what is wrong with it in Go's words, members that come twice, bytes that are no UTF-8."""

from __future__ import annotations

import json
from typing import Any

#: What Python's decoder says -> where Go says it stands.
_PLACES = {
    "Expecting value": "looking for beginning of value",
    "Expecting property name enclosed in double quotes": "looking for beginning of object key string",
    "Illegal trailing comma before end of object": "looking for beginning of object key string",
    "Illegal trailing comma before end of array": "looking for beginning of value",
    "Expecting ':' delimiter": "after object key",
    "Extra data": "after top-level value",
}
_END = "unexpected end of JSON input"


class JsonError(ValueError):
    """The bytes are no JSON."""


def read(body: bytes) -> Any:
    """The value. Raises JsonError."""
    text = body.decode("utf-8", "replace")
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise JsonError(_complaint(text, error)) from error


def duplicates(body: bytes) -> list[str]:
    """The paths of the members that come twice in their objects, in the order in which Go meets them."""
    found = _Repeats()
    json.loads(body.decode("utf-8", "replace"), object_pairs_hook=found.note)
    return found.paths() if found.any else []


def _complaint(text: str, error: json.JSONDecodeError) -> str:
    position = error.pos
    while position < len(text) and text[position] in " \t\n\r":
        position += 1
    if position >= len(text) or error.msg.startswith("Unterminated string"):
        return _END
    place = _PLACES.get(error.msg)
    if place is None:
        # A comma is missing after a member or an item; which of the two shows in what was opened last.
        opened = _opened(text[:position])
        place = "after array element" if opened == "[" else "after object key:value pair"
    return f"invalid character '{text[position]}' {place}"


def _opened(text: str) -> str:
    """The bracket that is open at the end of a text; strings in it are whole."""
    stack: list[str] = []
    quoted = escaped = False
    for character in text:
        if quoted:
            escaped, quoted = character == "\\" and not escaped, character != '"' or escaped
        elif character == '"':
            quoted = True
        elif character in "[{":
            stack.append(character)
        elif character in "]}" and stack:
            stack.pop()
    return stack[-1] if stack else ""


class _Pairs(list[tuple[str, Any]]):
    """An object with each of its members as often as it came."""


class _Repeats:
    """Notes the members of every object while JSON is read."""

    def __init__(self) -> None:
        self.any = False
        self._last = _Pairs()

    def note(self, pairs: list[tuple[str, Any]]) -> _Pairs:
        self.any = self.any or len({key for key, _ in pairs}) < len(pairs)
        self._last = _Pairs(pairs)
        return self._last

    def paths(self) -> list[str]:
        """Each repeated member before what is in it; the outermost object was noted last."""
        found: list[str] = []
        _walk(self._last, "", found)
        return list(dict.fromkeys(found))


def _walk(value: Any, path: str, found: list[str]) -> None:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for key, item in value:
            where = f"{path}.{key}" if path else key
            if key in seen:
                found.append(where)
            seen.add(key)
            _walk(item, where, found)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _walk(item, f"{path}[{index}]", found)
