"""Patches, applied to a copy that shares with the original whatever the patch leaves alone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonpatch
import jsonpointer

from hack.apiserver.status import StatusError, bad_request, unsupported_media_type
from hack.apiserver.strategic import strategic_merge

if TYPE_CHECKING:
    from hack.apiserver.admission import Object
    from hack.apiserver.resources import Row

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
#: The real server's limit on the operations of one JSON patch.
MOST_OPERATIONS = 10_000


def patched(row: Row, obj: Object, *, media_type: str, body: bytes) -> Object:
    """The object after the patch. Raises StatusError 400, 415 or 422."""
    accepted = (JSON_PATCH, MERGE_PATCH) if row.custom else (JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH)
    if media_type not in accepted:
        raise unsupported_media_type(media_type, accepted)
    patch = parsed(body)
    if media_type == JSON_PATCH:
        return _json_patch(obj, patch)
    if not isinstance(patch, dict):
        raise bad_request("error decoding patch: json: cannot unmarshal into Go value of type map[string]interface {}")
    result = merge(obj, patch) if media_type == MERGE_PATCH else strategic_merge(obj, patch)
    return dict(result)


def parsed(body: bytes) -> Any:
    """The JSON of a body. Raises StatusError 400."""
    try:
        return json.loads(body)
    except ValueError as error:
        raise bad_request(f"error decoding patch: {error}") from error


def merge(target: Any, patch: Any) -> Any:
    """RFC 7386."""
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
    if not isinstance(patch, list) or not all(isinstance(operation, dict) for operation in patch):
        raise bad_request("error decoding patch: json: cannot unmarshal into Go value of type jsonpatch.Patch")
    if len(patch) > MOST_OPERATIONS:
        message = f"The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, got {len(patch)}"
        raise StatusError(code=413, reason="RequestEntityTooLarge", message=message)
    try:
        result = jsonpatch.apply_patch(obj, patch)
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException) as error:
        message = "the server rejected our request due to an error in our request"
        raise StatusError(code=422, reason="Invalid", message=message, details={}) from error
    if not isinstance(result, dict):
        raise bad_request("the patch does not leave an object")
    return result
