"""Patches, applied to a copy that shares with the original whatever the patch leaves alone."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import jsonpatch
import jsonpointer

from hack.apiserver import go_text
from hack.apiserver.json_text import JsonError, read
from hack.apiserver.status import StatusError, bad_request, unsupported_media_type
from hack.apiserver.strategic import StrategyError, strategic_merge

if TYPE_CHECKING:
    from hack.apiserver.admission import Object
    from hack.apiserver.resources import Row

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
#: What the real server says it takes. Applying is refused here with the same words, as by a server that is older.
_NAMED = (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)
#: The real server's limit on the operations of one JSON patch.
MOST_OPERATIONS = 10_000


def patched(row: Row, obj: Object, *, media_type: str, body: bytes) -> Object:
    """The object after the patch. Raises StatusError 400, 415, 422 or 500."""
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
    """Refuse a patch of a format that the kind does not take. Raises StatusError 415."""
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


def _mistaken(value: Any, wanted: str, media_type: str) -> StatusError:
    prefix = "" if media_type == STRATEGIC_MERGE_PATCH else "error decoding patch: "
    return bad_request(f"{prefix}json: cannot unmarshal {go_text.word(value)} into Go value of type {wanted}")


def merge(target: Any, patch: Any) -> Any:
    """RFC 7386; as on the real server, the objects in a list lose their nulls too."""
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
    for operation in patch:
        if not isinstance(operation, dict):
            raise _mistaken(operation, "handlers.jsonPatchOp", JSON_PATCH)
    if len(patch) > MOST_OPERATIONS:
        message = f"The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, got {len(patch)}"
        raise StatusError(code=413, reason="RequestEntityTooLarge", message=f"Request entity too large: {message}")
    result = copy.deepcopy(obj)
    try:
        for operation in patch:
            usual = _usual(result, operation)
            result = jsonpatch.JsonPatch([usual] if usual else []).apply(result, in_place=True)
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, TypeError, AttributeError) as error:
        message = "the server rejected our request due to an error in our request"
        raise StatusError(code=422, reason="Invalid", message=message, details={}) from error
    if not isinstance(result, dict):
        raise bad_request("the patch does not leave an object")
    return result


def _usual(doc: Any, operation: Object) -> Object | None:
    """The operation as the RFC would have it said, for what the real server's library takes beyond it.

    There, a pointer's first part does not count, so that it need not begin with a slash; a list is counted from its
    end by a negative number; and in an object a member that is absent can be replaced, copied, and tested for null.
    """
    if operation.get("path") == "":
        # Nor does that library replace the whole object: what comes out has no name.
        raise bad_request("the name of the object was undeterminable: name must be provided")
    pointer, parent = _resolved(doc, operation.get("path"))
    usual = operation | {"path": pointer}
    op = operation.get("op")
    last = jsonpointer.JsonPointer(pointer).parts[-1:] or [""]
    if op in {"add", "replace", "test"}:
        usual.setdefault("value", None)
    if isinstance(parent, dict):
        if op == "replace":
            usual["op"] = "add"
        if op == "test" and usual["value"] is None and last[0] not in parent:
            return None
    if op in {"move", "copy"}:
        usual["from"], source = _resolved(doc, operation.get("from"))
        name = (jsonpointer.JsonPointer(usual["from"]).parts or [""])[-1]
        if op == "copy" and isinstance(source, dict) and name not in source:
            return {"op": "add", "path": pointer, "value": None}
    return usual


def _resolved(doc: Any, text: Any) -> tuple[str, Any]:
    """A pointer with the places of lists counted from their beginnings, and what its last part stands in."""
    if not isinstance(text, str) or "/" not in text:
        raise jsonpointer.JsonPointerException("no pointer")
    parts = text.split("/")[1:]
    parent, here = None, doc
    for index, part in enumerate(parts):
        parent = here
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(here, list) and name.startswith("-") and name[1:].isdigit():
            name = parts[index] = str(len(here) + int(name))
        if isinstance(here, dict):
            here = here.get(name)
        elif isinstance(here, list):
            here = here[int(name)] if name.isdigit() and int(name) < len(here) else None
        else:
            here = None
    return "".join(f"/{part}" for part in parts), parent
