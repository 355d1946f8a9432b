"""Strategic merge patch for built-in kinds: lists are merged by the merge keys of the fields' types.

kubectl's apply, edit, label, annotate, patch, cordon and uncordon send it. The order of list items is not arranged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hack.apiserver.schema.go_types import type_of

if TYPE_CHECKING:
    from hack.apiserver.admission import Object
    from hack.apiserver.schema.go_types import Type

_PATCH = "$patch"
_DELETE_FROM = "$deleteFromPrimitiveList/"
_RETAIN = "$retainKeys"
#: The merge key of a list of plain values that is merged instead of replaced.
_SET = "+"


class StrategyError(Exception):
    """The patch does not fit the kind."""


def strategic_merge(target: Object, patch: Object, *, resource: str) -> Object:
    """Return the object of a kind (plural.group) after the patch. Raises StrategyError."""
    return _merge_map(target, patch, type_of(resource)) or {}


def _merge_map(target: Any, patch: Object, kind: Type | None) -> Object | None:
    """Merge a map; None when the patch deletes it."""
    directive = patch.get(_PATCH)
    if directive == "delete":
        return None
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != _PATCH}
    if directive not in {None, "merge"}:
        raise StrategyError(f"unknown patch type: {directive}")
    base = dict(target) if isinstance(target, dict) else {}
    if _RETAIN in patch:
        base = {key: value for key, value in base.items() if key in patch[_RETAIN]}
    for key, value in patch.items():
        if key.startswith(_DELETE_FROM):
            field = key.removeprefix(_DELETE_FROM)
            base[field] = [item for item in base.get(field, []) if item not in value]
    for key, value in patch.items():
        if not key.startswith("$"):
            _merge_member(base, key, value, kind)
    return base


def _merge_member(base: Object, key: str, value: Any, kind: Type | None) -> None:
    below, merge_key = _below(kind, key)
    merged: Any = value
    if isinstance(value, dict):
        merged = _merge_map(base.get(key), value, below)
    elif isinstance(value, list):
        merged = _merge_list(base.get(key), value, below, merge_key)
    if merged is None:
        base.pop(key, None)
    else:
        base[key] = merged


def _below(kind: Type | None, key: str) -> tuple[Type | None, str]:
    """Return the type of a member, of an item for a list, and the list's merge key."""
    if kind is not None and kind.form == "map":
        return kind.item, ""
    found = kind.fields.get(key) if kind is not None else None
    if found is None:
        return None, ""
    return (found.type.item if found.type.form == "list" else found.type), found.merge_key


def _merge_list(target: Any, patch: list[Any], item_type: Type | None, key: str) -> list[Any]:
    current = list(target) if isinstance(target, list) else []
    if key == _SET:
        return current + [item for item in patch if item not in current]
    if not key or any(isinstance(item, dict) and item.get(_PATCH) == "replace" for item in patch):
        return [item for item in patch if not (isinstance(item, dict) and set(item) == {_PATCH})]
    for item in patch:
        _merge_item(current, item, item_type, key)
    return current


def _merge_item(current: list[Any], item: Any, kind: Type | None, key: str) -> None:
    if not isinstance(item, dict) or key not in item:
        raise StrategyError(f"map: {item} does not contain declared merge key: {key}")
    places = [index for index, known in enumerate(current) if isinstance(known, dict) and known.get(key) == item[key]]
    merged = _merge_map(current[places[0]] if places else {}, item, kind)
    if places:
        current[places[0] : places[0] + 1] = [] if merged is None else [merged]
    elif merged is not None:
        current.append(merged)
