"""Accessors for raw Kubernetes objects, which are plain JSON; all accept missing and null fields."""

from __future__ import annotations

from typing import Any, TypeAlias

#: Objects from a store are shared: never modify them.
Object: TypeAlias = dict[str, Any]


def metadata(obj: Object) -> Object:
    """Return `metadata`, or an empty object."""
    found = obj.get("metadata")
    return found if isinstance(found, dict) else {}


def name(obj: Object) -> str:
    """Return `metadata.name`, or ""."""
    return metadata(obj).get("name") or ""


def namespace(obj: Object) -> str:
    """Return `metadata.namespace`; "" for cluster-scoped objects."""
    return metadata(obj).get("namespace") or ""


def key(obj: Object) -> tuple[str, str]:
    """Return namespace and name, which identify an object of a kind."""
    meta = metadata(obj)
    return meta.get("namespace") or "", meta.get("name") or ""


def uid(obj: Object) -> str:
    """Return `metadata.uid`, or ""."""
    return metadata(obj).get("uid") or ""


def resource_version(obj: Object) -> str:
    """Return `metadata.resourceVersion` of an object or a list, or ""."""
    return metadata(obj).get("resourceVersion") or ""


def labels(obj: Object) -> dict[str, str]:
    """Return `metadata.labels`, or an empty object."""
    return metadata(obj).get("labels") or {}


def annotations_of(obj: Object) -> dict[str, str]:
    """Return `metadata.annotations`, or an empty object."""
    return metadata(obj).get("annotations") or {}


def finalizers(obj: Object) -> list[str]:
    """Return `metadata.finalizers`, or an empty list."""
    return metadata(obj).get("finalizers") or []


def is_deleting(obj: Object) -> bool:
    """Return True if the object has a deletionTimestamp."""
    return bool(metadata(obj).get("deletionTimestamp"))


def spec(obj: Object) -> Object:
    """Return `spec`, or an empty object."""
    return obj.get("spec") or {}


def status(obj: Object) -> Object:
    """Return `status`, or an empty object."""
    return obj.get("status") or {}


def condition(obj: Object, type_: str) -> Object | None:
    """Return the condition of that type, or None."""
    for entry in status(obj).get("conditions") or ():
        if entry.get("type") == type_:
            return dict(entry)
    return None


def is_condition_true(obj: Object, type_: str) -> bool:
    """Return True if the condition exists and its status is `True`."""
    found = condition(obj, type_)
    return found is not None and found.get("status") == "True"


def owner_uid(obj: Object) -> str:
    """Return the uid of the controlling owner, or ""."""
    for owner in metadata(obj).get("ownerReferences") or ():
        if owner.get("controller"):
            return owner.get("uid") or ""
    return ""
