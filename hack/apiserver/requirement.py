"""One term of a selector."""

from __future__ import annotations

from dataclasses import dataclass


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
