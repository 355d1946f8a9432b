"""The namespace controller: deletes the contents of namespaces that are being deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.apiserver.admission import WriteOptions
from hack.apiserver.deletion import DeleteOptions, settle
from hack.apiserver.identity import User
from hack.apiserver.route import Route
from hack.apiserver.worker import Worker
from upgrade_manager.kube.resources import NAMESPACES

if TYPE_CHECKING:
    from hack.apiserver.history import Entry
    from hack.apiserver.resources import ResourceTable
    from hack.apiserver.storage import Storage
    from hack.apiserver.writes import Writer

CONTROLLER = User(
    name="system:serviceaccount:kube-system:namespace-controller",
    groups=("system:serviceaccounts", "system:masters", "system:authenticated"),
)


class NamespaceController:
    """Deletes the contents of terminating namespaces, then removes their finalizer."""

    def __init__(self, storage: Storage, *, table: ResourceTable, writer: Writer) -> None:
        self._storage = storage
        self._table = table
        self._writer = writer
        #: The namespaces that are terminating.
        self._terminating: set[str] = set()
        self.worker: Worker[str] = Worker(self._empty)
        storage.observers.append(self._observe)

    def _observe(self, collection: str, entry: Entry) -> None:
        stored = entry.stored
        if collection == NAMESPACES.name:
            self._observe_namespace(stored.name, entry)
        elif entry.kind == "DELETED" and stored.namespace in self._terminating:
            self.worker.add(stored.namespace)

    def _observe_namespace(self, name: str, entry: Entry) -> None:
        if entry.kind == "DELETED":
            self._terminating.discard(name)
        elif "deletionTimestamp" in entry.stored.object["metadata"]:
            self._terminating.add(name)
            self.worker.add(name)

    async def _empty(self, name: str) -> None:
        remaining = 0
        for collection in self._storage.collections():
            row = self._table.stored(collection.name)
            for state in collection.states(name) if row is not None and row.resource.namespaced else ():
                remaining += 1
                if row is not None and "deletionTimestamp" not in state.object["metadata"]:
                    member = Route(row=row, verb="delete", namespace=name, name=state.name)
                    delete = DeleteOptions(propagation="Background")
                    outcome = await self._writer.delete(member, delete, WriteOptions(user=CONTROLLER))
                    remaining -= outcome.removed
        if not remaining:
            self._finalize(name)

    def _finalize(self, name: str) -> None:
        row = self._table.stored(NAMESPACES.name)
        stored = self._storage.get(NAMESPACES.name, ("", name))
        if row is not None and stored is not None and stored.object.get("spec", {}).get("finalizers"):
            spec = {key: value for key, value in stored.object["spec"].items() if key != "finalizers"}
            settle(self._storage, row, stored.object | {"spec": spec})
