"""Admission of writes in namespaces, and of namespaces themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.apiserver.metadata import identity
from hack.apiserver.status import forbidden, not_found
from upgrade_manager.kube.resources import NAMESPACES

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from random import Random

    from hack.apiserver.admission import Object, Operation, WriteOptions
    from hack.apiserver.resources import Row
    from hack.apiserver.route import Route
    from hack.apiserver.storage import Storage


#: The finalizer in a namespace's spec, removed when the namespace is empty.
CONTENTS = "kubernetes"
NAME_LABEL = "kubernetes.io/metadata.name"


def check_namespace(storage: Storage, route: Route, name: str) -> None:
    """Refuse creations in a missing or terminating namespace. Raises StatusError 404 or 403."""
    found = storage.get(NAMESPACES.name, ("", route.namespace))
    if found is None:
        raise not_found(NAMESPACES, route.namespace)
    since = found.object["metadata"].get("deletionTimestamp")
    if since:
        cause = {
            "reason": "NamespaceTerminating",
            "message": f"namespace {route.namespace} is being terminated",
            "field": "metadata.namespace",
        }
        why = f"unable to create new content in namespace {route.namespace} because it is being terminated"
        raise forbidden(route.row.resource, name, why, causes=[cause])


def namespace_stage(row: Row, new: Object, old: Object | None, operation: Operation, options: WriteOptions) -> Object:
    """Add the name label; for a new namespace also finalizer and phase, which clients cannot remove."""
    _ = options
    if row.resource.name != NAMESPACES.name:
        return new
    meta = new["metadata"]
    labels = (meta.get("labels") or {}) | ({NAME_LABEL: meta["name"]} if meta.get("name") else {})
    new = new | {"metadata": meta | {"labels": labels}}
    if operation == "CREATE":
        new |= {"spec": (new.get("spec") or {}) | {"finalizers": [CONTENTS]}, "status": {"phase": "Active"}}
    elif old is not None:
        new["spec"] = old.get("spec", {})
    return new


FIRST_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")


def bootstrap(storage: Storage, *, now: Callable[[], datetime], random: Random) -> None:
    """Write the initial namespaces."""
    for name in FIRST_NAMESPACES:
        metadata = {"name": name, **identity(now=now(), random=random), "labels": {NAME_LABEL: name}}
        namespace = {
            "kind": "Namespace",
            "apiVersion": "v1",
            "metadata": metadata,
            "spec": {"finalizers": [CONTENTS]},
            "status": {"phase": "Active"},
        }
        storage.write(NAMESPACES.name, ("", name), namespace)
