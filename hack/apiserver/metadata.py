"""The server's changes to an object before it is stored: system fields, generation, separation of status."""

from __future__ import annotations

import copy
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hack.apiserver.schema.field_error import invalid as field_invalid
from hack.apiserver.schema.field_error import required
from hack.apiserver.status import StatusError, bad_request, conflict, invalid, modified
from upgrade_manager.api.timestamps import format_time

if TYPE_CHECKING:
    from datetime import datetime
    from random import Random

    from hack.apiserver.admission import Object
    from hack.apiserver.resources import Row
    from hack.apiserver.route import Route

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH = 5
_LONGEST_PREFIX = 63 - _SUFFIX_LENGTH
#: The fields of ObjectMeta in their order, without managedFields, as there is no server-side apply.
_FIELDS = (
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
)
#: The fields of ObjectMeta that only the server sets.
_SYSTEM = ("generation", "creationTimestamp", "resourceVersion")
#: The fields of ObjectMeta that a client may omit and must not change.
_KEPT = ("uid", "deletionTimestamp", "deletionGracePeriodSeconds")


def decoded(body: Any, route: Route) -> Object:
    """Decode a body as an object of the route's kind. Raises StatusError 400."""
    if not isinstance(body, dict):
        raise bad_request("the object provided is unrecognized (must be of type object)")
    row = route.row
    if not all(isinstance(body.get(key) or "", str) for key in ("kind", "apiVersion")):
        raise bad_request("kind and apiVersion must be strings")
    given = (body.get("kind") or row.resource.kind, body.get("apiVersion") or row.resource.api_version)
    if not row.custom and given != (row.resource.kind, row.resource.api_version):
        raise bad_request(f"{given[0]} in version {given[1]} cannot be handled as a {row.resource.kind}")
    if row.custom and (body.get("apiVersion") or "") != row.resource.api_version and route.verb != "patch":
        raise bad_request(
            f"the API version in the data ({body.get('apiVersion') or ''}) does not match the expected API version "
            f"({row.resource.api_version})"
        )
    return _ordered(body, row) | {"metadata": _metadata(body.get("metadata"), route)}


def _ordered(body: Object, row: Row) -> Object:
    head = {"kind": row.resource.kind, "apiVersion": row.resource.api_version, "metadata": {}}
    if row.custom:
        # A wrong kind is reported after a wrong version.
        head |= {key: body[key] for key in ("kind", "apiVersion") if body.get(key)}
    return head | {key: value for key, value in body.items() if key not in head}


def _metadata(given: Any, route: Route) -> Object:
    if given is not None and not isinstance(given, dict):
        raise bad_request("metadata must be an object")
    metadata = dict(given or {})
    namespace = metadata.get("namespace") or ""
    if route.row.resource.namespaced:
        if namespace and namespace != route.namespace:
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        metadata["namespace"] = route.namespace
    else:
        metadata.pop("namespace", None)
    return metadata


def tidy(metadata: Object) -> Object:
    """Sort ObjectMeta and drop empty and unknown fields; unchanged entries are shared."""
    kept = {field: metadata[field] for field in _FIELDS if metadata.get(field)}
    for field in ("labels", "annotations"):
        if field in kept and isinstance(kept[field], dict) and None in kept[field].values():
            kept[field] = {key: value if value is not None else "" for key, value in kept[field].items()}
    if metadata.get("deletionGracePeriodSeconds") == 0:
        kept["deletionGracePeriodSeconds"] = 0
    return kept


def initialized(row: Row, new: Object, *, now: datetime, random: Random) -> Object:
    """Return a new object with its system fields, without fields that a create must not set."""
    metadata = new["metadata"]
    if metadata.get("resourceVersion"):
        message = "resourceVersion should not be set on objects to be created"
        raise StatusError(code=500, reason="", message=message)
    for field in ("deletionTimestamp", "deletionGracePeriodSeconds"):
        metadata.pop(field, None)
    if not metadata.get("name"):
        metadata["name"] = _generated(row, metadata.get("generateName", ""), random)
    metadata |= identity(now=now, random=random)
    if row.generation or row.custom:
        metadata["generation"] = 1
    new = new | {"metadata": tidy(metadata)}
    if row.status_subresource and not row.status_on_create:
        new.pop("status", None)
        if row.initial_status is not None:
            new["status"] = copy.deepcopy(row.initial_status)
    return new


def identity(*, now: datetime, random: Random) -> Object:
    """Return the metadata that identifies a new object among those of the same name."""
    return {"uid": str(uuid.UUID(int=random.getrandbits(128), version=4)), "creationTimestamp": format_time(now)}


def _generated(row: Row, prefix: str, random: Random) -> str:
    if not prefix:
        raise invalid(row.resource, "", [required("metadata.name", "name or generateName is required")])
    return prefix[:_LONGEST_PREFIX] + "".join(random.choices(_ALPHABET, k=_SUFFIX_LENGTH))


def check_name(route: Route, name: str) -> None:
    """Check the object's name against the path. Raises StatusError 400."""
    if not name:
        raise bad_request(
            f"the name of the object ({route.name} based on URL) was undeterminable: name must be provided"
        )
    if name != route.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({route.name})")


def check_current(row: Row, new: Object, old: Object, *, whole: bool) -> None:
    """Check UID and resourceVersion against the stored object; `whole` for a PUT. Raises 409, 422 or 500."""
    name = old["metadata"]["name"]
    given, actual = new["metadata"], old["metadata"]
    if whole and given.get("uid") and given["uid"] != actual["uid"]:
        why = (
            f"StorageError: invalid object, Code: 4, Key: {_stored_at(row, actual)}, ResourceVersion: 0, "
            "AdditionalErrorMsg: Precondition failed: "
            f"UID in precondition: {given['uid']}, UID in object meta: {actual['uid']}"
        )
        raise conflict(row.resource, name, why)
    revision = given.get("resourceVersion")
    if revision and not str(revision).isdigit():
        message = f'strconv.ParseUint: parsing "{revision}": invalid syntax'
        raise StatusError(code=500, reason="", message=message)
    if not revision and whole and not row.unconditional_update:
        error = field_invalid("metadata.resourceVersion", 0, "must be specified for an update")
        raise invalid(replace(row.resource, kind=row.resource.plural), name, [error])
    if revision and revision != actual["resourceVersion"]:
        raise modified(row.resource, name)


def _stored_at(row: Row, metadata: Object) -> str:
    """Return the etcd key, which one error message shows."""
    folder = f"{row.resource.group}/{row.resource.plural}" if row.custom else row.resource.plural
    return "/".join(filter(None, ["/registry", folder, metadata.get("namespace", ""), metadata["name"]]))


def with_immutable_fields(row: Row, new: Object, old: Object, *, subresource: str) -> Object:
    """Return an update in which fields that this endpoint must not write are taken from the old state."""
    if subresource:
        changed = _only(new, old, "status")
        if row.custom:
            return changed
        # Writes of a built-in kind's status may change most of the metadata.
        kept = {field: old["metadata"].get(field) for field in row.status_keeps}
        return changed | {"metadata": tidy(_system(new["metadata"] | kept, old["metadata"]))}
    new = new | {"metadata": tidy(_system(new["metadata"], old["metadata"]))}
    if row.status_subresource:
        new = _only(old, new, "status")
    if (row.generation or row.custom) and _desired(row, new) != _desired(row, old):
        metadata = new["metadata"] | {"generation": old["metadata"].get("generation", 0) + 1}
        new = new | {"metadata": tidy(metadata)}
    return new


def _system(new: Object, old: Object) -> Object:
    """Return new metadata with the server's fields; immutable fields are restored only if omitted."""
    metadata = dict(new)
    for field in _SYSTEM:
        metadata.pop(field, None)
        if field in old:
            metadata[field] = old[field]
    for field in _KEPT:
        if field in old and not metadata.get(field):
            metadata[field] = old[field]
    return metadata


def _only(source: Object, target: Object, field: str) -> Object:
    """Return the target with one field of the source."""
    merged = dict(target)
    merged.pop(field, None)
    if field in source:
        merged[field] = source[field]
    return merged


def _desired(row: Row, obj: Object) -> Object:
    """Return what metadata.generation counts: all but metadata, and but status if it is a subresource."""
    if not row.custom:
        fields = ("spec", "webhooks", "endpoints")
        annotations = obj["metadata"].get("annotations") if row.annotated_generation else None
        return {field: obj.get(field) for field in fields} | {"annotations": annotations}
    ignored = {"metadata", "status"} if row.status_subresource else {"metadata"}
    return {key: value for key, value in obj.items() if key not in ignored}
