"""The OpenAPI schemas of metadata, shared by the documents of all groups."""

from __future__ import annotations

from typing import Any

_PREFIX = "io.k8s.apimachinery.pkg.apis.meta.v1."
OBJECT_META = _PREFIX + "ObjectMeta"
LIST_META = _PREFIX + "ListMeta"
OWNER_REFERENCE = _PREFIX + "OwnerReference"
TIME = _PREFIX + "Time"


def reference(name: str) -> dict[str, Any]:
    """Return a reference to another schema."""
    return {"allOf": [{"$ref": f"#/components/schemas/{name}"}], "default": {}}


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def _map(description: str) -> dict[str, Any]:
    return {"type": "object", "description": description, "additionalProperties": {"type": "string", "default": ""}}


def _time(description: str) -> dict[str, Any]:
    return {"allOf": [{"$ref": f"#/components/schemas/{TIME}"}], "description": description}


_OBJECT_META = {
    "type": "object",
    "description": "ObjectMeta is the metadata that every stored object has.",
    "properties": {
        "annotations": _map("Free text by key, for tools; never used to select objects."),
        "creationTimestamp": _time("When the server created the object."),
        "deletionGracePeriodSeconds": {
            "type": "integer",
            "format": "int64",
            "description": "Seconds that the object has to terminate after its deletion was requested.",
        },
        "deletionTimestamp": _time("Set when the deletion is requested; finalizers may delay it."),
        "finalizers": {
            "type": "array",
            "description": "Must be empty before the object is removed.",
            "items": {"type": "string", "default": ""},
            "x-kubernetes-list-type": "set",
            "x-kubernetes-patch-strategy": "merge",
        },
        "generateName": _text("Prefix of a name that the server completes when no name is given."),
        "generation": {
            "type": "integer",
            "format": "int64",
            "description": "Counts the changes of the desired state.",
        },
        "labels": _map("Short values by key, with which objects are selected."),
        "managedFields": {
            "type": "array",
            "description": "Who set which fields; not kept by this server.",
            "items": {"type": "object"},
        },
        "name": _text("Unique among the objects of the kind in a namespace; cannot change."),
        "namespace": _text("The namespace that the object lives in; empty for cluster-scoped kinds."),
        "ownerReferences": {
            "type": "array",
            "description": "The objects with which this one disappears; at most one of them controls it.",
            "items": {"$ref": f"#/components/schemas/{OWNER_REFERENCE}"},
            "x-kubernetes-list-map-keys": ["uid"],
            "x-kubernetes-list-type": "map",
            "x-kubernetes-patch-merge-key": "uid",
            "x-kubernetes-patch-strategy": "merge",
        },
        "resourceVersion": _text("Changes with every write; compare for equality only."),
        "selfLink": _text("No longer set."),
        "uid": _text("Unique in time and space."),
    },
}

_OWNER_REFERENCE = {
    "type": "object",
    "description": "OwnerReference points to an object with which this one disappears.",
    "required": ["apiVersion", "kind", "name", "uid"],
    "properties": {
        "apiVersion": _text("Group and version of the owner."),
        "blockOwnerDeletion": {
            "type": "boolean",
            "description": "Whether a foreground deletion of the owner waits for this object.",
        },
        "controller": {"type": "boolean", "description": "Whether the owner is the one that manages this object."},
        "kind": _text("Kind of the owner."),
        "name": _text("Name of the owner."),
        "uid": _text("UID of the owner."),
    },
    "x-kubernetes-map-type": "atomic",
}

_LIST_META = {
    "type": "object",
    "description": "ListMeta is the metadata of a list.",
    "properties": {
        "continue": _text("Token for the next page; empty on the last one."),
        "remainingItemCount": {
            "type": "integer",
            "format": "int64",
            "description": "How many objects follow after this page, if known.",
        },
        "resourceVersion": _text("The state of the collection that the list shows."),
        "selfLink": _text("No longer set."),
    },
}

#: Keyed by the names that `reference` takes.
DEFINITIONS: dict[str, Any] = {
    OBJECT_META: _OBJECT_META,
    OWNER_REFERENCE: _OWNER_REFERENCE,
    LIST_META: _LIST_META,
    TIME: {"type": "string", "format": "date-time", "description": "Time is an RFC 3339 time in whole seconds."},
}
