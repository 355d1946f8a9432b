"""The parts of a schema that matter to one pass over an object, so that a pass goes only where it has work to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Schema = dict[str, Any]

#: Schemas remembered at a time; more than any cluster has kinds.
_MOST = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Facets:
    """One schema reduced to what a pass looks for; None where there is nothing."""

    #: Kept for its identity: the cache's key must not be reused while the entry lives.
    schema: Schema
    lists: Schema | None
    rules: Schema | None
    defaults: Schema | None


_CACHE: dict[int, Facets] = {}


def facets(schema: Schema) -> Facets:
    """The facets of a schema, which must not change afterwards."""
    known = _CACHE.get(id(schema))
    if known is not None:
        return known
    if len(_CACHE) >= _MOST:
        _CACHE.clear()
    made = Facets(
        schema=schema,
        lists=reduced(schema, "x-kubernetes-list-type"),
        rules=reduced(schema, "x-kubernetes-validations"),
        defaults=reduced(schema, "default"),
    )
    _CACHE[id(schema)] = made
    return made


def reduced(schema: Schema, keyword: str) -> Schema | None:
    """The schema without the branches in which the keyword does not occur; None when it occurs nowhere.

    A node that has the keyword stays as it is, properties and all: CEL has to know their names.
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
    # Properties that need no look must not fall under additionalProperties; structural schemas never have both.
    return own | ({"properties": properties} if properties else {}) | below


def _reduced_properties(schema: Schema, keyword: str) -> Schema:
    known = schema.get("properties") or {}
    return {name: part for name, below in known.items() if (part := reduced(below, keyword)) is not None}
