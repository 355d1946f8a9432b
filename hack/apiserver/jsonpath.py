r"""The JSONPath of printer columns and field selectors: Kubernetes' dialect, as far as it finds values.

Fields (`.a.b`, `['a.b']`, `.a\.b`), indices and slices (`[0]`, `[-1]`, `[1:3]`), wildcards (`[*]`, `.*`), recursive
descent (`..a`) and filters (`[?(@.type=='Ready')]`, with ==, !=, <, <=, >, >=, or a bare path for "is there").
"""

from __future__ import annotations

import json
import operator
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


_TOKEN = re.compile(
    r"""\.\.(?P<descend>[\w\-$]+|\*)
      | \.?\[\?\((?P<filter>.*?)\)\]
      | \.?\[(?:'(?P<single>(?:[^'\\]|\\.)*)'|"(?P<double>(?:[^"\\]|\\.)*)")\]
      | \.?\[(?P<index>-?\d+|\*|-?\d*:-?\d*)\]
      | \.(?P<star>\*)
      | \.?(?P<field>(?:[^.\[\]\\]|\\.)+)
    """,
    re.VERBOSE,
)
_FILTER = re.compile(r"\s*@(?P<path>.*?)\s*(?:(?P<op>==|!=|<=|>=|<|>)\s*(?P<literal>.+?))?\s*")
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class PathError(ValueError):
    """The path cannot be understood."""


def find(path: str, value: Any) -> list[Any]:
    """All values at the path; nothing when it leads nowhere. Raises PathError for a path that is no path."""
    found = [value]
    for step in compiled(path):
        found = [result for item in found for result in step(item)]
    return found


@lru_cache(maxsize=1024)
def compiled(path: str) -> tuple[Callable[[Any], list[Any]], ...]:
    """The steps of a path, with or without `$` and braces around it. Raises PathError."""
    text = path.strip()
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1]
    text = text.removeprefix("$")
    if text in {"", "."}:
        return ()
    steps = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise PathError(f"cannot read the JSONPath {path!r} from {text[position:]!r} on")
        steps.append(_step(match))
        position = match.end()
    return tuple(steps)


def _step(match: re.Match[str]) -> Callable[[Any], list[Any]]:
    kind = match.lastgroup or ""
    text = match[kind]
    if kind == "descend":
        return lambda value: _descend(value, text)
    if kind == "filter":
        return _filter(text)
    if kind == "index":
        return _index(text)
    if kind == "star":
        return _all
    name = re.sub(r"\\(.)", r"\1", text)
    return lambda value: [value[name]] if isinstance(value, dict) and name in value else []


def _all(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, list) else []


def _index(text: str) -> Callable[[Any], list[Any]]:
    if text == "*":
        return _all
    if ":" in text:
        start, end = (int(part) if part else None for part in text.split(":"))
        return lambda value: value[start:end] if isinstance(value, list) else []
    number = int(text)
    return lambda value: value[number:][:1] if isinstance(value, list) and -len(value) <= number else []


def _descend(value: Any, name: str) -> list[Any]:
    found = []
    if isinstance(value, dict) and (name in value or name == "*"):
        found += _all(value) if name == "*" else [value[name]]
    for item in _all(value):
        found += _descend(item, name)
    return found


def _filter(text: str) -> Callable[[Any], list[Any]]:
    match = _FILTER.fullmatch(text)
    if match is None:
        raise PathError(f"cannot read the filter {text!r}")
    steps = compiled(match["path"])
    operation, literal = match["op"], match["literal"]
    wanted = None if literal is None else _literal(literal)

    def accepts(item: Any) -> bool:
        found: Iterable[Any] = [item]
        for step in steps:
            found = [result for value in found for result in step(value)]
        if operation is None:
            return bool(list(found))
        return any(_holds(operation, value, wanted) for value in found)

    return lambda value: [item for item in _all(value) if accepts(item)]


def _holds(operation: str, left: Any, right: Any) -> bool:
    try:
        return _COMPARE[operation](left, right)
    except TypeError:
        return False


def _literal(text: str) -> Any:
    if text[0] == text[-1] == "'":
        return text[1:-1]
    try:
        return json.loads(text)
    except ValueError as error:
        raise PathError(f"cannot read the value {text!r} in a filter") from error
