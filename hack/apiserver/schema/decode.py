"""Judges the raw JSON of a write before anything else does: metadata's types and unknown fields.

A typed decoder refuses a label that is a number; one that reads JSON must do so itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The fields of ObjectMeta and their JSON types.
METADATA_FIELDS: dict[str, type | tuple[type, ...]] = {
    "name": str,
    "generateName": str,
    "namespace": str,
    "selfLink": str,
    "uid": str,
    "resourceVersion": str,
    "generation": int,
    "creationTimestamp": str,
    "deletionTimestamp": str,
    "deletionGracePeriodSeconds": int,
    "labels": dict,
    "annotations": dict,
    "ownerReferences": list,
    "finalizers": list,
    "managedFields": list,
}
_OWNER_FIELDS: dict[str, type | tuple[type, ...]] = {
    "apiVersion": str,
    "kind": str,
    "name": str,
    "uid": str,
    "controller": bool,
    "blockOwnerDeletion": bool,
}
_GO_TYPES = {"labels": "map[string]string", "annotations": "map[string]string", "finalizers": "[]string"}


def unknown_metadata(metadata: dict[str, Any]) -> list[str]:
    """Paths of the fields in metadata that ObjectMeta does not have."""
    unknown = [f"metadata.{key}" for key in metadata if key not in METADATA_FIELDS]
    for index, owner in enumerate(metadata.get("ownerReferences") or ()):
        if isinstance(owner, dict):
            unknown += [f"metadata.ownerReferences[{index}].{key}" for key in owner if key not in _OWNER_FIELDS]
    return unknown


def mistyped_metadata(metadata: dict[str, Any]) -> str:
    """What a Go decoder says about the first value of a wrong type in metadata; empty when all are right."""
    return next(_mistyped(metadata), "")


def _mistyped(metadata: dict[str, Any]) -> Iterator[str]:
    for key, value in metadata.items():
        expected = METADATA_FIELDS.get(key)
        if expected is None or value is None:
            continue
        if not _is(value, expected):
            yield _complaint(value, f"ObjectMeta.metadata.{key}", _GO_TYPES.get(key, "string"))
        elif key in {"labels", "annotations"}:
            yield from _strings(value.values(), key)
        elif key == "finalizers":
            yield from _strings(value, key)
        elif key == "ownerReferences":
            yield from _owners(value)


def _is(value: Any, expected: type | tuple[type, ...]) -> bool:
    return isinstance(value, expected) and not (expected is int and isinstance(value, bool))


def _strings(values: Any, key: str) -> Iterator[str]:
    for item in values:
        if item is not None and not isinstance(item, str):
            yield _complaint(item, f"ObjectMeta.metadata.{key}", "string")


def _owners(owners: list[Any]) -> Iterator[str]:
    for owner in owners:
        if not isinstance(owner, dict):
            yield _complaint(owner, "ObjectMeta.metadata.ownerReferences", "v1.OwnerReference")
            continue
        for key, expected in _OWNER_FIELDS.items():
            value = owner.get(key)
            if value is not None and not isinstance(value, expected):
                go_type = "bool" if expected is bool else "string"
                yield _complaint(value, f"OwnerReference.metadata.ownerReferences.{key}", go_type)


def _complaint(value: Any, where: str, go_type: str) -> str:
    return f"json: cannot unmarshal {_go_name(value)} into Go struct field {where} of type {go_type}"


def _go_name(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    names: dict[type, str] = {str: "string", list: "array", dict: "object"}
    return names[type(value)]
