"""One term of a selector, and what meets it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(frozen=True, slots=True)
class Requirement:
    """One term: the values are compared with that of the key, None when there is none."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, value: str | None) -> bool:
        """Whether a value, or its absence, meets the term."""
        return _OPERATORS[self.operator](value, self.values)


def number(value: str | None) -> int | None:
    """The integer that a value is, if it is one."""
    try:
        return int(value) if value is not None else None
    except ValueError:
        return None


def _greater(value: str | None, values: tuple[str, ...]) -> bool:
    found = number(value)
    return found is not None and found > int(values[0])


def _less(value: str | None, values: tuple[str, ...]) -> bool:
    found = number(value)
    return found is not None and found < int(values[0])


_OPERATORS: Mapping[str, Callable[[str | None, tuple[str, ...]], bool]] = {
    "in": lambda value, values: value is not None and value in values,
    "notin": lambda value, values: value is None or value not in values,
    "exists": lambda value, values: value is not None,  # noqa: ARG005
    "!": lambda value, values: value is None,  # noqa: ARG005
    ">": _greater,
    "<": _less,
}
