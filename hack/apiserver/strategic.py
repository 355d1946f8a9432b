"""Strategic merge patch for built-in kinds: lists of maps are merged by key, and directives say the rest.

Which list merges by which key is part of the API types; here it is told by the field names above the list, which is
unambiguous for the kinds of this server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hack.apiserver.status import bad_request

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hack.apiserver.admission import Object

#: Field of a list -> the key by which its items are told apart.
_MERGE_KEYS: Mapping[str, str] = {
    "containers": "name",
    "initContainers": "name",
    "ephemeralContainers": "name",
    "env": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "imagePullSecrets": "name",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
    "conditions": "type",
    "ownerReferences": "uid",
    "secrets": "name",
    "webhooks": "name",
    "resourceClaims": "name",
    "podIPs": "ip",
    "hostIPs": "ip",
    "sourceRanges": "cidr",
}
#: `ports` merges by another field in a Service than in a container; `addresses` only in a Node.
_PORTS_OF_SERVICE = "port"
_PORTS_OF_CONTAINER = "containerPort"
#: Lists of plain values that are merged instead of replaced.
_MERGED_SETS = frozenset({"finalizers", "podCIDRs"})

_PATCH = "$patch"
_DELETE_FROM = "$deleteFromPrimitiveList/"
_ORDER = "$setElementOrder/"
_RETAIN = "$retainKeys"


def strategic_merge(target: Object, patch: Object) -> Object:
    """The object after the patch. Raises StatusError 400 for a directive that makes no sense."""
    merged = _merge_map(target, patch, path=(target.get("kind", ""),))
    return merged if merged is not None else {}


def _merge_map(target: Any, patch: Object, *, path: tuple[str, ...]) -> Object | None:
    """None when the patch deletes the map."""
    directive = patch.get(_PATCH)
    if directive == "delete":
        return None
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != _PATCH}
    if directive not in {None, "merge"}:
        raise bad_request(f"Unknown patch type: {directive} in map: {patch}")
    base = dict(target) if isinstance(target, dict) else {}
    if _RETAIN in patch:
        base = {key: value for key, value in base.items() if key in patch[_RETAIN]}
    for key, value in patch.items():
        if not key.startswith("$"):
            _merge_member(base, key, value, path)
    _apply_lists(base, patch, path)
    return base


def _merge_member(base: Object, key: str, value: Any, path: tuple[str, ...]) -> None:
    merged: Any = value
    if isinstance(value, dict):
        merged = _merge_map(base.get(key), value, path=(*path, key))
    elif isinstance(value, list):
        merged = _merge_list(base.get(key), value, path=(*path, key))
    if merged is None:
        base.pop(key, None)
    else:
        base[key] = merged


def _apply_lists(base: Object, patch: Object, path: tuple[str, ...]) -> None:
    """The directives about lists that stand beside them."""
    for key, value in patch.items():
        if key.startswith(_DELETE_FROM):
            field = key.removeprefix(_DELETE_FROM)
            base[field] = [item for item in base.get(field, []) if item not in value]
    for key, value in patch.items():
        if key.startswith(_ORDER):
            field = key.removeprefix(_ORDER)
            if field in base:
                base[field] = _ordered(base[field], value, merge_key((*path, field)))


def _merge_list(target: Any, patch: list[Any], *, path: tuple[str, ...]) -> list[Any]:
    current = list(target) if isinstance(target, list) else []
    key = merge_key(path)
    if key is None:
        if path[-1] in _MERGED_SETS:
            return current + [item for item in patch if item not in current]
        return [item for item in patch if not (isinstance(item, dict) and set(item) == {_PATCH})]
    if any(isinstance(item, dict) and item.get(_PATCH) == "replace" for item in patch):
        return [item for item in patch if _PATCH not in item]
    for item in patch:
        _merge_item(current, item, key, path)
    return current


def _merge_item(current: list[Any], item: Any, key: str, path: tuple[str, ...]) -> None:
    if not isinstance(item, dict) or key not in item:
        raise bad_request(f"map: {item} does not contain declared merge key: {key}")
    index = next(
        (index for index, known in enumerate(current) if isinstance(known, dict) and known.get(key) == item[key]), None
    )
    merged = _merge_map(current[index] if index is not None else {}, item, path=path)
    if index is None:
        current.extend([] if merged is None else [merged])
    elif merged is None:
        del current[index]
    else:
        current[index] = merged


def merge_key(path: tuple[str, ...]) -> str | None:
    """The key of a list, by the object's kind and the fields that lead to it; None for a list that is replaced."""
    field = path[-1]
    if field == "ports":
        return _PORTS_OF_CONTAINER if _below_containers(path) else _PORTS_OF_SERVICE if path[0] == "Service" else None
    if field == "addresses":
        return "type" if path[0] == "Node" else None
    if field == "conditions" and path[0] == "EndpointSlice":
        return None
    return _MERGE_KEYS.get(field)


def _below_containers(path: tuple[str, ...]) -> bool:
    return len(path) > 1 and path[-2] in {"containers", "initContainers", "ephemeralContainers"}


def _ordered(items: list[Any], order: list[Any], key: str | None) -> list[Any]:
    """The items in the order of the directive; those it does not name stay behind their former neighbour."""
    wanted = [entry[key] if key and isinstance(entry, dict) else entry for entry in order]
    ranks = {value: rank for rank, value in enumerate(wanted)}
    placed: list[tuple[int, int, Any]] = []
    rank = -1
    for index, item in enumerate(items):
        value = item.get(key) if key and isinstance(item, dict) else item
        rank = ranks.get(value, rank)
        placed.append((rank, index, item))
    return [item for _, _, item in sorted(placed, key=lambda entry: entry[:2])]
