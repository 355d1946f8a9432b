"""The parts of a schema that concern one pass over an object, and the cache of what is derived from unchanging JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable


V = TypeVar("V")

Object = dict[str, Any]

#: The size of a cache; more than any cluster has kinds.
_MOST = 512


class ByIdentity(Generic[V]):
    """A function whose results are kept by the identity of its argument, which must not change afterwards."""

    def __init__(self, compute: Callable[[Object], V]) -> None:
        self._compute = compute
        #: By id; the argument stays alive, so that no other one gets its id.
        self._known: dict[int, tuple[Object, V]] = {}

    def __call__(self, value: Object) -> V:
        """Return the result for this very argument."""
        known = self._known.get(id(value))
        if known is None:
            if len(self._known) >= _MOST:
                self._known.clear()
            known = self._known[id(value)] = (value, self._compute(value))
        return known[1]


Schema = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facets:
    """The parts of one schema by pass; None if a pass has nothing to do."""

    lists: Schema | None
    rules: Schema | None
    defaults: Schema | None


def _facets(schema: Schema) -> Facets:
    return Facets(
        lists=reduced(schema, "x-kubernetes-list-type"),
        rules=reduced(schema, "x-kubernetes-validations"),
        defaults=reduced(schema, "default"),
    )


#: The facets of a schema, which must not change afterwards.
facets = ByIdentity(_facets)


def reduced(schema: Schema, keyword: str) -> Schema | None:
    """Return the schema without branches that lack the keyword; None when it does not occur.

    A node that has the keyword is kept with its properties, because CEL needs their names.
    """
    properties = _reduced_properties(schema, keyword)
    below = {
        name: part
        for name in ("items", "additionalProperties")
        if isinstance(schema.get(name), dict) and (part := reduced(schema[name], keyword)) is not None
    }
    if keyword in schema:
        return schema
    if not properties and not below:
        return None
    own = {name: value for name, value in schema.items() if name not in {"properties", "items", "additionalProperties"}}
    # A removed property must not fall under additionalProperties; structural schemas never have both.
    return own | ({"properties": properties} if properties else {}) | below


def _reduced_properties(schema: Schema, keyword: str) -> Schema:
    known = schema.get("properties") or {}
    return {name: part for name, below in known.items() if (part := reduced(below, keyword)) is not None}
