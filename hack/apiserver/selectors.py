"""Label and field selectors of a list or watch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hack.apiserver.admission import Object


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
    if path == "source" and isinstance(value, dict):
        value = value.get("component")
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "false" if path in {"spec.unschedulable", "spec.hostNetwork"} else ""
    return str(value)
