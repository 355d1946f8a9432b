"""CustomResourceDefinitions: each served version becomes a row of the resource table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hack.apiserver.admission import WriteOptions
from hack.apiserver.builtin import INSTANCES
from hack.apiserver.deletion import DeleteOptions, settle
from hack.apiserver.identity import User
from hack.apiserver.metadata import tidy
from hack.apiserver.resources import Column, Row
from hack.apiserver.route import Route
from hack.apiserver.status import StatusError, about
from hack.apiserver.worker import Worker
from upgrade_manager.api.timestamps import format_time
from upgrade_manager.kube.resources import Resource

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from hack.apiserver.admission import Object, Operation
    from hack.apiserver.history import Entry
    from hack.apiserver.resources import ResourceTable
    from hack.apiserver.storage import Storage
    from hack.apiserver.writes import Writer

CRDS = Resource(
    group="apiextensions.k8s.io",
    version="v1",
    plural="customresourcedefinitions",
    kind="CustomResourceDefinition",
    namespaced=False,
)
CONTROLLER = User(name="system:apiserver", groups=("system:masters", "system:authenticated"))


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


class DefinitionController:
    """Syncs the resource table with the definitions, updates their status, and cleans up after deleted ones."""

    def __init__(self, storage: Storage, *, table: ResourceTable, writer: Writer, now: Callable[[], datetime]) -> None:
        self._storage = storage
        self._table = table
        self._writer = writer
        self._now = now
        #: Names of definitions that are being deleted, which are also the names of their collections.
        self._going: set[str] = set()
        self.worker: Worker[str] = Worker(self._clean)
        storage.observers.append(self._observe)

    def _observe(self, collection: str, entry: Entry) -> None:
        if collection in self._going and entry.kind == "DELETED":
            self.worker.add(collection)
        if collection != CRDS.name:
            return
        definition = entry.stored.object
        kind = (definition["spec"]["group"], definition["spec"]["names"]["plural"])
        if entry.kind == "DELETED":
            self._table.remove(*kind)
            self._storage.drop(entry.stored.name)
            self._going.discard(entry.stored.name)
            return
        if entry.previous is None or entry.previous.object["spec"] != definition["spec"]:
            self._table.replace(*kind, rows(definition))
        if "deletionTimestamp" in definition["metadata"]:
            self._going.add(entry.stored.name)
            self.worker.add(entry.stored.name)
        elif self._status(definition) != definition.get("status"):
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

    async def _clean(self, name: str) -> None:
        """Delete the objects of a kind; without any left, remove the finalizer of its definition."""
        row = self._table.stored(name)
        remaining = 0
        for state in self._storage.collection(name).states() if row is not None else ():
            remaining += 1
            if row is not None and "deletionTimestamp" not in state.object["metadata"]:
                member = Route(row=row, verb="delete", namespace=state.namespace, name=state.name)
                options = WriteOptions(user=CONTROLLER)
                outcome = await self._writer.delete(member, DeleteOptions(propagation="Background"), options)
                remaining -= outcome.removed
        if not remaining:
            self._release(name)

    def _release(self, name: str) -> None:
        row = self._table.stored(CRDS.name)
        stored = self._storage.get(CRDS.name, ("", name))
        if row is None or stored is None:
            return
        metadata = stored.object["metadata"]
        if INSTANCES not in metadata.get("finalizers", []):
            return
        left = [finalizer for finalizer in metadata.get("finalizers", []) if finalizer != INSTANCES]
        settle(self._storage, row, stored.object | {"metadata": tidy(metadata | {"finalizers": left})})


def check_definition(storage: Storage, row: Row) -> None:
    """Refuse creations of a kind whose definition is being deleted. Raises StatusError 405."""
    found = storage.get(CRDS.name, ("", row.storage)) if row.custom else None
    if found is None or "deletionTimestamp" not in found.object["metadata"]:
        return
    message = "create not allowed while custom resource definition is terminating"
    raise StatusError(code=405, reason="MethodNotAllowed", message=message, details=about(row.resource, ""))
