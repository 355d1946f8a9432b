"""Drops what a custom resource's schema does not name, and tells what it was.

Kept: apiVersion, kind and metadata at the root and in embedded resources; everything below a node with
x-kubernetes-preserve-unknown-fields, except inside its named properties, which are pruned by their own schemas.
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

_ROOT = frozenset({"apiVersion", "kind", "metadata"})


def prune(obj: Any, schema: Schema) -> tuple[Any, list[str]]:
    """The object without unknown fields, sharing what is unchanged, and the paths of the fields dropped, sorted."""
    unknown: list[str] = []
    pruned = _prune(obj, schema, "", unknown, root=True)
    return pruned, sorted(unknown)


def _prune(value: Any, schema: Schema, path: str, unknown: list[str], *, root: bool = False) -> Any:
    if isinstance(value, dict):
        return _object(value, schema, path, unknown, root=root)
    items = schema.get("items")
    if isinstance(value, list) and isinstance(items, dict):
        kept = [_prune(item, items, f"{path}[{index}]", unknown) for index, item in enumerate(value)]
        return value if all(new is old for new, old in zip(kept, value, strict=True)) else kept
    return value


def _object(value: dict[str, Any], schema: Schema, path: str, unknown: list[str], *, root: bool) -> dict[str, Any]:
    known = schema.get("properties") or {}
    rest = schema.get("additionalProperties")
    preserve = bool(schema.get("x-kubernetes-preserve-unknown-fields")) or rest is True
    embedded = root or bool(schema.get("x-kubernetes-embedded-resource"))
    kept = {}
    changed = False
    for key, item in value.items():
        below = known.get(key, rest if isinstance(rest, dict) else None)
        where = f"{path}.{key}" if path else key
        if embedded and key in _ROOT:
            kept[key] = item
        elif below is not None:
            kept[key] = _prune(item, below, where, unknown)
            changed = changed or kept[key] is not item
        elif preserve:
            kept[key] = item
        else:
            unknown.append(where)
            changed = True
    return kept if changed else value
