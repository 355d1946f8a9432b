"""Reading raw Kubernetes objects, which are plain JSON; every accessor bears missing and null parts.

Objects handed out by a store are shared: read them, never write into them.
"""

from __future__ import annotations

from typing import Any, TypeAlias

Object: TypeAlias = dict[str, Any]


def metadata(obj: Object) -> Object:
    """The object's metadata, empty when it has none."""
    found = obj.get("metadata")
    return found if isinstance(found, dict) else {}


def name(obj: Object) -> str:
    """`metadata.name`, or nothing."""
    return metadata(obj).get("name") or ""


def namespace(obj: Object) -> str:
    """`metadata.namespace`; nothing for cluster-scoped objects."""
    return metadata(obj).get("namespace") or ""


def key(obj: Object) -> tuple[str, str]:
    """Namespace and name, which identify an object among those of its kind."""
    meta = metadata(obj)
    return meta.get("namespace") or "", meta.get("name") or ""


def uid(obj: Object) -> str:
    """`metadata.uid`, or nothing."""
    return metadata(obj).get("uid") or ""


def resource_version(obj: Object) -> str:
    """`metadata.resourceVersion`, or nothing; of a list too."""
    return metadata(obj).get("resourceVersion") or ""


def labels(obj: Object) -> dict[str, str]:
    """`metadata.labels`, empty when absent."""
    return metadata(obj).get("labels") or {}


def annotations_of(obj: Object) -> dict[str, str]:
    """`metadata.annotations`, empty when absent."""
    return metadata(obj).get("annotations") or {}


def finalizers(obj: Object) -> list[str]:
    """`metadata.finalizers`, empty when absent."""
    return metadata(obj).get("finalizers") or []


def is_deleting(obj: Object) -> bool:
    """Whether deletion was asked for and only finalizers keep the object."""
    return bool(metadata(obj).get("deletionTimestamp"))


def spec(obj: Object) -> Object:
    """`spec`, empty when absent."""
    return obj.get("spec") or {}


def status(obj: Object) -> Object:
    """`status`, empty when absent."""
    return obj.get("status") or {}


def condition(obj: Object, type_: str) -> Object | None:
    """The entry of `status.conditions` of that type."""
    for entry in status(obj).get("conditions") or ():
        if entry.get("type") == type_:
            return dict(entry)
    return None


def is_condition_true(obj: Object, type_: str) -> bool:
    """Whether the condition is there and its status is `True`."""
    found = condition(obj, type_)
    return found is not None and found.get("status") == "True"


def owner_uid(obj: Object) -> str:
    """The uid of the owner that controls the object, or nothing."""
    for owner in metadata(obj).get("ownerReferences") or ():
        if owner.get("controller"):
            return owner.get("uid") or ""
    return ""
