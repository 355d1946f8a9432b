"""Strategic merge patch for built-in kinds: lists are joined as the fields' types say, and directives say the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hack.apiserver import go_text
from hack.apiserver.schema.go_types import type_of

if TYPE_CHECKING:
    from hack.apiserver.admission import Object
    from hack.apiserver.schema.go_types import Type

_PATCH = "$patch"
_DELETE_FROM = "$deleteFromPrimitiveList/"
_ORDER = "$setElementOrder/"
_RETAIN = "$retainKeys"
#: The merge key of a list of plain values that is joined instead of replaced.
_SET = "+"


class StrategyError(Exception):
    """The patch makes no sense for the kind."""


def strategic_merge(target: Object, patch: Object, *, resource: str) -> Object:
    """The object of a kind (plural.group) after the patch. Raises StrategyError."""
    merged = _merge_map(target, patch, type_of(resource))
    return merged if merged is not None else {}


def _merge_map(target: Any, patch: Object, kind: Type | None) -> Object | None:
    """None when the patch deletes the map."""
    directive = patch.get(_PATCH)
    if directive == "delete":
        return None
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != _PATCH}
    if directive not in {None, "merge"}:
        raise StrategyError(f"unknown patch type: {directive} in map: {go_text.shown(patch)}")
    base = dict(target) if isinstance(target, dict) else {}
    if _RETAIN in patch:
        base = {key: value for key, value in base.items() if key in patch[_RETAIN]}
    before = dict(base)
    for key, value in patch.items():
        if not key.startswith("$"):
            _merge_member(base, key, value, kind, patch)
    _apply_lists(base, patch, kind, before)
    return base


def _merge_member(base: Object, key: str, value: Any, kind: Type | None, patch: Object) -> None:
    below, merge_key = _below(kind, key)
    merged: Any = value
    if isinstance(value, dict):
        merged = _merge_map(base.get(key), value, below)
    elif isinstance(value, list):
        order = patch.get(_ORDER + key)
        if merge_key and order is not None:
            _check_order(value, order, merge_key)
        merged = _merge_list(base.get(key), value, below, merge_key)
    if merged is None:
        base.pop(key, None)
    else:
        base[key] = merged


def _below(kind: Type | None, key: str) -> tuple[Type | None, str]:
    """The type of a member, and the merge key if it is a list; of an item for a list."""
    if kind is None or kind.form not in {"struct", "map"}:
        return None, ""
    if kind.form == "map":
        return kind.item, ""
    found = kind.fields.get(key)
    if found is None:
        return None, ""
    return (found.type.item if found.type.form == "list" else found.type), found.merge_key


def _apply_lists(base: Object, patch: Object, kind: Type | None, before: Object) -> None:
    """The directives about lists that stand beside them."""
    for key, value in patch.items():
        if key.startswith(_DELETE_FROM):
            field = key.removeprefix(_DELETE_FROM)
            base[field] = [item for item in base.get(field, []) if item not in value]
    for key, value in patch.items():
        field = key.removeprefix(_ORDER)
        if key.startswith(_ORDER) and field in base:
            merge_key = _below(kind, field)[1]
            base[field] = _arranged(base[field], value, before.get(field) or [], merge_key)


def _merge_list(target: Any, patch: list[Any], item_type: Type | None, key: str) -> list[Any]:
    current = list(target) if isinstance(target, list) else []
    if key == _SET:
        return _arranged(current + [item for item in patch if item not in current], patch, current, key)
    if not key:
        return [item for item in patch if not (isinstance(item, dict) and set(item) == {_PATCH})]
    if any(isinstance(item, dict) and item.get(_PATCH) == "replace" for item in patch):
        return [item for item in patch if _PATCH not in item]
    before = list(current)
    for item in patch:
        _merge_item(current, item, item_type, key)
    return _arranged(current, patch, before, key)


def _merge_item(current: list[Any], item: Any, kind: Type | None, key: str) -> None:
    if not isinstance(item, dict) or key not in item:
        raise StrategyError(f"map: {go_text.shown(item)} does not contain declared merge key: {key}")
    index = next(
        (index for index, known in enumerate(current) if isinstance(known, dict) and known.get(key) == item[key]), None
    )
    merged = _merge_map(current[index] if index is not None else {}, item, kind)
    if index is None:
        current.extend([] if merged is None else [merged])
    elif merged is None:
        del current[index]
    else:
        current[index] = merged


def _check_order(patch: list[Any], order: list[Any], key: str) -> None:
    """Refuse a list whose items are not in the order, or in another one. Raises StrategyError."""
    listed = [_identity(item, key) for item in order]
    named = [_identity(item, key) for item in patch if not (isinstance(item, dict) and item.get(_PATCH) == "delete")]
    places = [listed.index(name) if name in listed else -1 for name in named]
    if -1 in places or places != sorted(places):
        raise StrategyError(
            f"The order in patch list:\n{go_text.shown(patch)}\n doesn't match $setElementOrder list:\n"
            f"{go_text.shown(order)}\n"
        )


def _identity(item: Any, key: str) -> Any:
    return item.get(key) if key != _SET and isinstance(item, dict) else item


def _arranged(items: list[Any], order: list[Any], before: list[Any], key: str) -> list[Any]:
    """The items in the order asked for; one it does not name comes first only where it did so before."""
    wanted = [_identity(entry, key) for entry in order]
    places = {_hashed(_identity(item, key)): place for place, item in enumerate(before)}
    named = [item for item in items if _identity(item, key) in wanted]
    named.sort(key=lambda item: wanted.index(_identity(item, key)))
    others = [item for item in items if _identity(item, key) not in wanted]
    arranged: list[Any] = []
    for item in named:
        place = places.get(_hashed(_identity(item, key)))
        while place is not None and others and places.get(_hashed(_identity(others[0], key)), place) < place:
            arranged.append(others.pop(0))
        arranged.append(item)
    return arranged + others


def _hashed(value: Any) -> str:
    return repr(value)
