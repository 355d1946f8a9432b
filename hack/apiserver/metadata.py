"""What the server itself does to an object before it is stored: system fields, generation, status kept apart."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hack.apiserver.status import StatusError, bad_request, conflict, invalid, modified

if TYPE_CHECKING:
    from datetime import datetime
    from random import Random

    from hack.apiserver.admission import Object
    from hack.apiserver.resources import Row
    from hack.apiserver.route import Route

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH = 5
_LONGEST_PREFIX = 63 - _SUFFIX_LENGTH
#: The fields of ObjectMeta that are kept, in their order; managedFields is not, as nobody applies on this server.
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
#: The fields of ObjectMeta that a client cannot change.
_SYSTEM = ("uid", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generateName")


def timestamp(moment: datetime) -> str:
    """RFC 3339 in whole seconds, as metav1.Time."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def decoded(body: Any, route: Route) -> Object:
    """A body as an object of the route's kind, with kind, apiVersion and metadata in front. Raises StatusError 400."""
    if not isinstance(body, dict):
        raise bad_request("the object provided is unrecognized (must be of type object)")
    row = route.row
    kind, version = body.get("kind"), body.get("apiVersion")
    if row.custom and not (kind and version):
        missing = "kind" if not kind else "apiVersion"
        raise bad_request(f"Object '{missing[0].upper() + missing[1:]}' is missing in the body")
    if version and version != row.resource.api_version:
        raise bad_request(
            f"the API version in the data ({version}) does not match the expected API version "
            f"({row.resource.api_version})"
        )
    if kind and kind != row.resource.kind:
        raise bad_request(
            f'{kind} in version "{row.resource.version}" cannot be handled as a {row.resource.kind}: '
            f"the kind in the data ({kind}) does not match the expected kind ({row.resource.kind})"
        )
    if not row.custom:
        _check_shape(body, row)
    return _ordered(body, row) | {"metadata": _metadata(body.get("metadata"), route)}


def _check_shape(body: Object, row: Row) -> None:
    """The outer types of a built-in kind, which the server itself relies on, as a typed decoder would check them."""
    for field in ("spec", "status"):
        if not isinstance(body.get(field, {}), dict | None):
            raise _mistyped(row, field)
    for field in ("webhooks", "rules", "subjects"):
        if not _are_objects(body.get(field)):
            raise _mistyped(row, field)
    for webhook in body.get("webhooks") or ():
        for field in ("objectSelector", "namespaceSelector", "clientConfig"):
            if not isinstance(webhook.get(field, {}), dict | None):
                raise _mistyped(row, f"webhooks.{field}")
        if not _are_objects(webhook.get("rules")) or not all(map(_is_rule, webhook.get("rules") or ())):
            raise _mistyped(row, "webhooks.rules")


def _is_rule(rule: Object) -> bool:
    fields = ("operations", "apiGroups", "apiVersions", "resources")
    return all(isinstance(rule.get(field, []), list) for field in fields)


def _are_objects(items: Any) -> bool:
    return items is None or (isinstance(items, list) and all(isinstance(item, dict) for item in items))


def _mistyped(row: Row, field: str) -> StatusError:
    kind, version = row.resource.kind, row.resource.version
    return bad_request(
        f'{kind} in version "{version}" cannot be handled as a {kind}: json: cannot unmarshal into Go struct field '
        f"{kind}.{field}"
    )


def _ordered(body: Object, row: Row) -> Object:
    head = {"kind": row.resource.kind, "apiVersion": row.resource.api_version, "metadata": {}}
    rest = body if row.custom else without_nulls(body)
    return head | {key: value for key, value in rest.items() if key not in head}


def _metadata(given: Any, route: Route) -> Object:
    if given is not None and not isinstance(given, dict):
        raise bad_request("metadata: must be an object")
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
    """ObjectMeta in its usual order, without empty and unknown fields; unchanged entries are shared."""
    kept = {field: metadata[field] for field in _FIELDS if metadata.get(field)}
    for field in ("labels", "annotations"):
        if field in kept and isinstance(kept[field], dict) and None in kept[field].values():
            kept[field] = {key: value for key, value in kept[field].items() if value is not None}
    if metadata.get("deletionGracePeriodSeconds") == 0:
        kept["deletionGracePeriodSeconds"] = 0
    return kept


def without_nulls(value: Any) -> Any:
    """The value without null members, as a typed server decodes it; the same value when there are none."""
    if isinstance(value, dict):
        members = {key: without_nulls(item) for key, item in value.items() if item is not None}
        same = len(members) == len(value) and all(members[key] is value[key] for key in members)
        return value if same else members
    if isinstance(value, list):
        items = [without_nulls(item) for item in value]
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    return value


def born(row: Row, new: Object, *, now: datetime, random: Random) -> Object:
    """A new object with its system fields, and without what it may not bring."""
    metadata = new["metadata"]
    if metadata.get("resourceVersion"):
        message = "resourceVersion should not be set on objects to be created"
        raise StatusError(code=500, reason="", message=message)
    for field in ("deletionTimestamp", "deletionGracePeriodSeconds", "generation"):
        metadata.pop(field, None)
    if not metadata.get("name"):
        metadata["name"] = _generated(row, metadata.get("generateName", ""), random)
    metadata["uid"] = str(uuid.UUID(int=random.getrandbits(128), version=4))
    metadata["creationTimestamp"] = timestamp(now)
    if row.generation or row.custom:
        metadata["generation"] = 1
    new = new | {"metadata": tidy(metadata)}
    if row.status_subresource and not row.status_on_create:
        new.pop("status", None)
        if row.initial_status is not None:
            new["status"] = row.initial_status
    return new


def _generated(row: Row, prefix: str, random: Random) -> str:
    if not prefix:
        message = "Required value: name or generateName is required"
        raise invalid(
            row.resource, "", [{"reason": "FieldValueRequired", "message": message, "field": "metadata.name"}]
        )
    return prefix[:_LONGEST_PREFIX] + "".join(random.choices(_ALPHABET, k=_SUFFIX_LENGTH))


def check_current(row: Row, new: Object, old: Object, *, need_revision: bool) -> None:
    """Compare what the request takes the object for with what it is. Raises StatusError 409 or 422."""
    name = old["metadata"]["name"]
    given, actual = new["metadata"], old["metadata"]
    if given.get("uid") and given["uid"] != actual["uid"]:
        why = f"Precondition failed: UID in precondition: {given['uid']}, UID in object meta: {actual['uid']}"
        raise conflict(row.resource, name, why)
    revision = given.get("resourceVersion")
    if not revision and need_revision and not row.unconditional_update:
        message = "Invalid value: 0: must be specified for an update"
        cause = {"reason": "FieldValueInvalid", "message": message, "field": "metadata.resourceVersion"}
        raise invalid(replace(row.resource, kind=row.resource.plural), name, [cause])
    if revision and revision != actual["resourceVersion"]:
        raise modified(row.resource, name)


def carried(row: Row, new: Object, old: Object, *, subresource: str) -> Object:
    """An update with everything that this endpoint may not write taken from the old state."""
    if subresource:
        return _only(new, old, "spec" if subresource == "finalize" else "status")
    metadata = dict(new["metadata"])
    for field in _SYSTEM:
        metadata.pop(field, None)
        if field in old["metadata"]:
            metadata[field] = old["metadata"][field]
    metadata["resourceVersion"] = old["metadata"]["resourceVersion"]
    _check_finalizers(row, metadata, old["metadata"])
    new = new | {"metadata": tidy(metadata)}
    if row.status_subresource:
        new = _only(old, new, "status")
    if (row.generation or row.custom) and _desired(row, new) != _desired(row, old):
        metadata = new["metadata"] | {"generation": old["metadata"].get("generation", 0) + 1}
        new = new | {"metadata": tidy(metadata)}
    return new


def _only(source: Object, target: Object, field: str) -> Object:
    """The target with one field of the source."""
    merged = dict(target)
    merged.pop(field, None)
    if field in source:
        merged[field] = source[field]
    return merged


def _desired(row: Row, obj: Object) -> Object:
    """What counts for the generation: all but metadata, and status where it has an endpoint of its own."""
    if not row.custom:
        return {"spec": obj.get("spec"), "webhooks": obj.get("webhooks"), "endpoints": obj.get("endpoints")}
    ignored = {"metadata", "status"} if row.status_subresource else {"metadata"}
    return {key: value for key, value in obj.items() if key not in ignored}


def _check_finalizers(row: Row, new: Object, old: Object) -> None:
    if "deletionTimestamp" not in old:
        return
    added = [name for name in new.get("finalizers", []) if name not in old.get("finalizers", [])]
    if added:
        listed = ", ".join(f'"{name}"' for name in added)
        message = (
            "Forbidden: no new finalizers can be added if the object is being deleted, "
            f"found new finalizers []string{{{listed}}}"
        )
        cause = {"reason": "FieldValueForbidden", "message": message, "field": "metadata.finalizers"}
        raise invalid(row.resource, old["name"], [cause])
