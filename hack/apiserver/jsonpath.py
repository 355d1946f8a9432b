r"""The subset of JSONPath that printer columns of the simulated cluster use.

Fields (`.a.b`, `['a.b']`, `.a\.b`), indices (`[0]`, `[-1]`), wildcards (`[*]`) and filters with == and !=
(`[?(@.type=='Ready')]`).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_TOKEN = re.compile(
    r"""\.?\[\?\(\s*@\.(?P<filter>[\w.\-]+)\s*(?P<op>==|!=)\s*(?:'(?P<single>[^']*)'|"(?P<double>[^"]*)")\s*\)\]
      | \.?\['(?P<quoted>[^']*)'\]
      | \.?\[(?P<index>-?\d+|\*)\]
      | \.?(?P<field>(?:[^.\[\]\\]|\\.)+)
    """,
    re.VERBOSE,
)


class PathError(ValueError):
    """The path is outside of the supported subset."""


def find(path: str, value: Any) -> list[Any]:
    """Return all values at the path. Raises PathError."""
    return _walk(compiled(path), value)


@lru_cache(maxsize=1024)
def compiled(path: str) -> tuple[Callable[[Any], list[Any]], ...]:
    """Return the steps of a path. Raises PathError."""
    steps = []
    position = 0
    while position < len(path):
        match = _TOKEN.match(path, position)
        if match is None:
            raise PathError(f"cannot read the JSONPath {path!r} from {path[position:]!r} on")
        steps.append(_step(match))
        position = match.end()
    return tuple(steps)


def _step(match: re.Match[str]) -> Callable[[Any], list[Any]]:
    if match["filter"]:
        steps, expected = compiled(match["filter"]), match["single"] or match["double"] or ""
        if match["op"] == "==":
            return lambda value: [item for item in _all(value) if expected in _walk(steps, item)]
        return lambda value: [item for item in _all(value) if _walk(steps, item) not in ([], [expected])]
    if match["index"] == "*":
        return _all
    if match["index"]:
        number = int(match["index"])
        return lambda value: value[number:][:1] if isinstance(value, list) and -len(value) <= number else []
    name = match["quoted"] or re.sub(r"\\(.)", r"\1", match["field"])
    return lambda value: [value[name]] if isinstance(value, dict) and name in value else []


def _walk(steps: tuple[Callable[[Any], list[Any]], ...], value: Any) -> list[Any]:
    found = [value]
    for step in steps:
        found = [result for item in found for result in step(item)]
    return found


def _all(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, list) else []
