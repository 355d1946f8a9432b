"""What namespaces mean to writes: what is in them needs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.apiserver.status import forbidden, not_found
from upgrade_manager.kube.resources import NAMESPACES

if TYPE_CHECKING:
    from hack.apiserver.admission import Object, Operation, WriteOptions
    from hack.apiserver.resources import Row
    from hack.apiserver.route import Route
    from hack.apiserver.storage import Storage

#: The finalizer in a namespace's spec, taken away when it is empty.
CONTENTS = "kubernetes"
NAME_LABEL = "kubernetes.io/metadata.name"
IMMORTAL = {"default", "kube-system", "kube-public"}


def check_namespace(storage: Storage, route: Route, name: str) -> None:
    """Refuse to create in a namespace that is not there or is going. Raises StatusError 404 or 403."""
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
    """Give a namespace its name label and, when it is new, its finalizer and phase, which only /finalize takes away."""
    if row.resource.name != NAMESPACES.name:
        return new
    meta = new["metadata"]
    labels = (meta.get("labels") or {}) | ({NAME_LABEL: meta["name"]} if meta.get("name") else {})
    new = new | {"metadata": meta | {"labels": labels}}
    if operation == "CREATE":
        new |= {"spec": (new.get("spec") or {}) | {"finalizers": [CONTENTS]}, "status": {"phase": "Active"}}
    elif old is not None and options.subresource != "finalize":
        new["spec"] = old.get("spec", {})
    return new


def check_immortal(route: Route) -> None:
    """Refuse to delete the namespaces that every cluster needs. Raises StatusError 403."""
    if route.row.resource.name == NAMESPACES.name and route.name in IMMORTAL:
        raise forbidden(route.row.resource, route.name, "this namespace may not be deleted")
