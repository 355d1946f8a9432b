"""Accessors for raw objects, which are plain JSON: no schema guarantees the type of a field.

A field that is absent, null or of another type is empty. Accessors of fields that every object has are named after
them; the others take a path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from upgrade_manager.api.text import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Objects from a store are shared: never modify them.
Object: TypeAlias = dict[str, Any]
#: Characters of another component's message.
_MAX_EXCERPT = 300


def metadata(obj: object) -> Object:
    """Return `metadata`, or an empty object."""
    found = obj.get("metadata") if isinstance(obj, dict) else None
    return found if isinstance(found, dict) else {}


def name(obj: object) -> str:
    """Return `metadata.name`, or ""."""
    found = metadata(obj).get("name")
    return found if isinstance(found, str) else ""


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


def is_condition_true(obj: Object, type_: str) -> bool:
    """Return True if the condition exists and its status is `True`."""
    return condition(obj, type_).get("status") == "True"


def owner_uid(obj: Object) -> str:
    """Return the uid of the controlling owner, or ""."""
    for owner in metadata(obj).get("ownerReferences") or ():
        if owner.get("controller"):
            return owner.get("uid") or ""
    return ""


def mapping(obj: object, *path: str) -> Mapping[str, Any]:
    """Return the object at the path."""
    found = value(obj, *path)
    return found if isinstance(found, dict) else {}


def strings(obj: object, *path: str) -> Mapping[str, str]:
    """Return the entries at the path whose values are strings, as of labels."""
    return {key: entry for key, entry in mapping(obj, *path).items() if isinstance(entry, str)}


def items(obj: object, *path: str) -> list[Any]:
    """Return the list at the path."""
    found = value(obj, *path)
    return found if isinstance(found, list) else []


def text(obj: object, *path: str) -> str:
    """Return the string at the path."""
    found = value(obj, *path)
    return found if isinstance(found, str) else ""


def number(obj: object, *path: str) -> int | None:
    """Return the integer at the path."""
    found = value(obj, *path)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def excerpt(obj: object, *path: str) -> str:
    """Return the string at the path for a message: one printable line of limited length, without a full stop."""
    line = one_line(text(obj, *path)[: 2 * _MAX_EXCERPT])
    return line[:_MAX_EXCERPT] + "…" if len(line) > _MAX_EXCERPT else line.rstrip(".")


def is_true(obj: object, *path: str) -> bool:
    """Return True for a boolean that is true."""
    return value(obj, *path) is True


def qualified_name(obj: object) -> str:
    """Return namespace/name."""
    return f"{text(obj, 'metadata', 'namespace')}/{name(obj)}"


def condition(obj: object, type_: str) -> Object:
    """Return the condition of that type."""
    return next((one for one in items(obj, "status", "conditions") if text(one, "type") == type_), {})


def value(obj: object, *path: str) -> object:
    """Return whatever is at the path; None if nothing is."""
    for key in path:
        if not isinstance(obj, dict):
            return None
        obj = obj.get(key)
    return obj
