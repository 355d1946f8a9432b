"""CustomResourceDefinitions: each served version becomes a row of the resource table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hack.apiserver.resources import Column, Row
from upgrade_manager.api.timestamps import format_time
from upgrade_manager.kube.resources import Resource

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from hack.apiserver.admission import Object, Operation, WriteOptions
    from hack.apiserver.history import Entry
    from hack.apiserver.resources import ResourceTable
    from hack.apiserver.storage import Storage

CRDS = Resource(
    group="apiextensions.k8s.io",
    version="v1",
    plural="customresourcedefinitions",
    kind="CustomResourceDefinition",
    namespaced=False,
)


def crd_stage(row: Row, new: Object, old: Object | None, operation: Operation, options: WriteOptions) -> Object:
    """Complete the names and the conversion of a definition; a mutating stage."""
    _ = (old, operation, options)
    spec = new.get("spec")
    if row.resource.name != CRDS.name or not isinstance(spec, dict) or not isinstance(spec.get("names"), dict):
        return new
    kind = str(spec["names"].get("kind", ""))
    names = ({"singular": kind.lower(), "listKind": kind + "List"} if kind else {}) | spec["names"]
    return new | {"spec": {"conversion": {"strategy": "None"}} | spec | {"names": names}}


def rows(definition: Object) -> list[Row]:
    """Return the rows of the served versions."""
    spec = definition["spec"]
    return [_row(spec, version) for version in spec["versions"] if version.get("served")]


def _row(spec: Object, version: Object) -> Row:
    names = spec["names"]
    subresources = version.get("subresources") or {}
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    resource = Resource(
        group=spec["group"],
        version=version["name"],
        plural=names["plural"],
        kind=names["kind"],
        namespaced=spec["scope"] == "Namespaced",
    )
    return Row(
        resource=resource,
        singular=names["singular"],
        list_kind=names["listKind"],
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        status_subresource="status" in subresources,
        # kube-apiserver sets it at each read of an object without a status.
        initial_status=((schema or {}).get("properties") or {}).get("status", {}).get("default"),
        schema=schema,
        columns=tuple(_column(column) for column in version.get("additionalPrinterColumns") or ()),
        custom=True,
        selectable=tuple(field["jsonPath"].lstrip(".") for field in version.get("selectableFields") or ()),
        generation=True,
        unconditional_update=False,
    )


def _column(column: Object) -> Column:
    return Column(
        name=column["name"],
        type=column["type"],
        json_path=column["jsonPath"],
        format=column.get("format", ""),
        description=column.get("description", ""),
        priority=column.get("priority", 0),
    )


class Definitions:
    """Syncs the resource table with the definitions, and updates their status.

    A deleted definition removes its kind with all objects at once, without a finalizer.
    """

    def __init__(self, storage: Storage, *, table: ResourceTable, now: Callable[[], datetime]) -> None:
        self._storage = storage
        self._table = table
        self._now = now
        storage.observers.append(self._observe)

    def _observe(self, collection: str, entry: Entry) -> None:
        if collection != CRDS.name:
            return
        definition = entry.stored.object
        kind = (definition["spec"]["group"], definition["spec"]["names"]["plural"])
        if entry.kind == "DELETED":
            self._table.remove(*kind)
            for state in self._storage.collection(entry.stored.name).states():
                self._storage.remove(entry.stored.name, (state.namespace, state.name))
            self._storage.drop(entry.stored.name)
            return
        if entry.previous is None or entry.previous.object["spec"] != definition["spec"]:
            self._table.replace(*kind, rows(definition))
        if self._status(definition) != definition.get("status"):
            settled = definition | {"status": self._status(definition)}
            self._storage.write(CRDS.name, ("", entry.stored.name), settled)

    def _status(self, definition: Object) -> dict[str, Any]:
        known = definition.get("status") or {}
        spec = definition["spec"]
        storing = [version["name"] for version in spec["versions"] if version.get("storage")]
        stored = list(dict.fromkeys([*(known.get("storedVersions") or []), *storing]))
        return {
            "conditions": known.get("conditions") or self._conditions(),
            "acceptedNames": spec["names"],
            "storedVersions": stored,
        }

    def _conditions(self) -> list[dict[str, str]]:
        moment = format_time(self._now())
        texts = (
            ("NamesAccepted", "NoConflicts", "no conflicts found"),
            ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        )
        return [
            {"type": kind, "status": "True", "lastTransitionTime": moment, "reason": reason, "message": message}
            for kind, reason, message in texts
        ]
