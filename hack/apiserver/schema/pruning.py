"""Removal of fields that a custom resource's schema does not define.

Kept: apiVersion, kind and metadata at the root; everything below a node with
x-kubernetes-preserve-unknown-fields, except inside its defined properties, which are pruned by their schemas.
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

_ROOT = frozenset({"apiVersion", "kind", "metadata"})


def prune(obj: Any, schema: Schema, *, old: Any = None) -> tuple[Any, list[str]]:
    """Return the object without unknown fields, and the sorted paths of the removed fields.

    Values that the object shares with `old`, which was pruned before, are skipped.
    """
    unknown: list[str] = []
    pruned = _prune(obj, schema, "", unknown, old, root=True)
    return pruned, sorted(unknown)


def _prune(value: Any, schema: Schema, path: str, unknown: list[str], old: Any, *, root: bool = False) -> Any:
    if isinstance(value, dict):
        before = old if isinstance(old, dict) else {}
        return _object(value, schema, path, unknown, before, root=root)
    items = schema.get("items")
    if isinstance(value, list) and isinstance(items, dict):
        kept = [_prune(item, items, f"{path}[{index}]", unknown, None) for index, item in enumerate(value)]
        return value if all(new is old for new, old in zip(kept, value, strict=True)) else kept
    return value


def _object(  # value, schema, path, old value
    value: dict[str, Any], schema: Schema, path: str, unknown: list[str], old: dict[str, Any], *, root: bool
) -> dict[str, Any]:
    known = schema.get("properties") or {}
    rest = schema.get("additionalProperties")
    preserve = bool(schema.get("x-kubernetes-preserve-unknown-fields")) or rest is True
    kept = {}
    changed = False
    for key, item in value.items():
        if old.get(key) is item and item is not None:
            kept[key] = item
            continue
        below = known.get(key, rest if isinstance(rest, dict) else None)
        where = f"{path}.{key}" if path else key
        if root and key in _ROOT:
            kept[key] = item
        elif below is not None:
            kept[key] = _prune(item, below, where, unknown, old.get(key))
            changed = changed or kept[key] is not item
        elif preserve:
            kept[key] = item
        else:
            unknown.append(where)
            changed = True
    return kept if changed else value
