"""Patches, applied to a copy that shares unchanged values with the original."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import jsonpatch
import jsonpointer

from hack.apiserver.json_text import JsonError, json_type, read
from hack.apiserver.status import StatusError, bad_request, unsupported_media_type
from hack.apiserver.strategic import StrategyError, strategic_merge

if TYPE_CHECKING:
    from hack.apiserver.admission import Object
    from hack.apiserver.resources import Row

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
#: The formats that kube-apiserver lists. Server-side apply is refused with the same text, as by an older server.
_NAMED = (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)


def patched(row: Row, obj: Object, *, media_type: str, body: bytes) -> Object:
    """Return the object after the patch. Raises StatusError 400, 415, 422 or 500."""
    check_media_type(row, media_type)
    patch = _read(body, media_type)
    if media_type == JSON_PATCH:
        return _json_patch(obj, patch)
    if not isinstance(patch, dict):
        raise _mistaken(patch, "map[string]interface {}", media_type)
    if media_type == MERGE_PATCH:
        return dict(merge(obj, patch))
    try:
        return dict(strategic_merge(obj, patch, resource=row.resource.name))
    except StrategyError as error:
        raise StatusError(code=500, reason="", message=str(error)) from error


def check_media_type(row: Row, media_type: str) -> None:
    """Refuse a patch format that the kind does not support. Raises StatusError 415."""
    if media_type in {JSON_PATCH, MERGE_PATCH} or (media_type == STRATEGIC_MERGE_PATCH and not row.custom):
        return
    if media_type == APPLY_PATCH or row.custom:
        raise unsupported_media_type(_NAMED if row.custom else (*_NAMED[:2], STRATEGIC_MERGE_PATCH))
    raise StatusError(code=415, reason="UnsupportedMediaType", message="415: Unsupported Media Type", details={})


def _read(body: bytes, media_type: str) -> Any:
    try:
        patch = read(body)
    except JsonError as error:
        prefix = "" if media_type == STRATEGIC_MERGE_PATCH else "error decoding patch: "
        raise bad_request(f"{prefix}{error}") from error
    if patch is None and media_type == MERGE_PATCH:
        raise bad_request("Invalid JSON Patch")
    return patch


def _mistaken(value: Any, expected: str, media_type: str) -> StatusError:
    prefix = "" if media_type == STRATEGIC_MERGE_PATCH else "error decoding patch: "
    return bad_request(f"{prefix}json: cannot unmarshal {json_type(value)} into Go value of type {expected}")


def merge(target: Any, patch: Any) -> Any:
    """Merge by RFC 7386; like kube-apiserver, remove nulls from objects in lists too."""
    if isinstance(patch, list):
        return [merge(None, item) if isinstance(item, dict | list) else item for item in patch]
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(merged.get(key), value)
    return merged


def _json_patch(obj: Object, patch: Any) -> Object:
    patch = [] if patch is None else patch
    if not isinstance(patch, list):
        raise _mistaken(patch, "[]handlers.jsonPatchOp", JSON_PATCH)
    result = copy.deepcopy(obj)
    try:
        for operation in patch:
            result = jsonpatch.JsonPatch(_usual(result, operation)).apply(result, in_place=True)
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, KeyError, TypeError) as error:
        message = "the server rejected our request due to an error in our request"
        raise StatusError(code=422, reason="Invalid", message=message, details={}) from error
    if not isinstance(result, dict):
        raise bad_request("the patch does not leave an object")
    return result


def _usual(doc: Object, operation: Object) -> list[Object]:
    """Return the operation in terms of RFC 6902: kube-apiserver replaces absent members and tests them for null."""
    if operation["op"] not in {"replace", "test"}:
        return [operation]
    pointer = jsonpointer.JsonPointer(operation["path"])
    parent, name = pointer.to_last(doc)
    if not isinstance(parent, dict) or name in parent:
        return [operation]
    if operation["op"] == "replace":
        return [operation | {"op": "add"}]
    return [] if operation.get("value") is None else [operation]
