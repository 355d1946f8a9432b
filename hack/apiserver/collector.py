"""The garbage collector: deletes objects without existing owners, and owners after their dependents.

The rules are those of kube-controller-manager. Owners are identified by UID; an owner in another namespace counts as
absent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from hack.apiserver.admission import WriteOptions
from hack.apiserver.deletion import FOREGROUND, DeleteOptions, settle
from hack.apiserver.identity import User
from hack.apiserver.metadata import tidy
from hack.apiserver.route import Route
from hack.apiserver.worker import Worker
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from hack.apiserver.admission import Object
    from hack.apiserver.history import Entry
    from hack.apiserver.resources import ResourceTable
    from hack.apiserver.storage import Key, Storage
    from hack.apiserver.stored import Stored
    from hack.apiserver.writes import Writer

    #: The collection, and the key in it.
    Place = tuple[str, Key]

COLLECTOR = User(
    name="system:serviceaccount:kube-system:generic-garbage-collector",
    groups=("system:serviceaccounts", "system:masters", "system:authenticated"),
)
#: The state of an owner: solid, deleted in the foreground (waiting for its dependents), or absent.
OwnerState = Literal["solid", "waiting", "absent"]


class GarbageCollector:
    """Watches every change in the store and deletes objects whose owners are absent."""

    def __init__(self, storage: Storage, *, table: ResourceTable, writer: Writer) -> None:
        self._storage = storage
        self._table = table
        self._writer = writer
        #: UID -> the place of its object; all existing objects.
        self._places: dict[str, Place] = {}
        #: UID of an owner, existing or not -> its dependents in insertion order.
        self._dependents: dict[str, dict[Place, None]] = {}
        self.worker: Worker[Place] = Worker(self._handle)
        storage.observers.append(self._observe)

    def _observe(self, collection: str, entry: Entry) -> None:
        stored = entry.stored
        place = (collection, (stored.namespace, stored.name))
        removed = entry.kind == "DELETED"
        before = _owner_uids(entry.previous)
        after = [] if removed else _owner_uids(stored)
        uid = stored.object["metadata"]["uid"]
        if before != after:
            self._index(place, before, after)
        if removed:
            self._places.pop(uid, None)
            self._add_all([*self._dependents.get(uid, ()), *self._waiting_owners(before)])
            return
        self._places[uid] = place
        if (after and before != after) or _collecting(stored.object):
            self.worker.add(place)

    def _index(self, place: Place, before: list[str], after: list[str]) -> None:
        for owner in before:
            known = self._dependents.get(owner, {})
            known.pop(place, None)
            if not known:
                self._dependents.pop(owner, None)
        for owner in after:
            self._dependents.setdefault(owner, {})[place] = None

    def _add_all(self, places: list[Place]) -> None:
        for place in places:
            self.worker.add(place)

    def _waiting_owners(self, uids: list[str]) -> list[Place]:
        """Return the owners that are deleted in the foreground."""
        places = [self._places[uid] for uid in uids if uid in self._places]
        found = [(place, self._storage.get(*place)) for place in places]
        return [place for place, stored in found if stored is not None and _collecting(stored.object)]

    async def _handle(self, place: Place) -> None:
        stored = self._storage.get(*place)
        if stored is None:
            return
        if _collecting(stored.object):
            await self._delete_dependents(place, stored)
        else:
            await self._collect(place, stored)

    async def _delete_dependents(self, place: Place, owner: Stored) -> None:
        uid = owner.object["metadata"]["uid"]
        blocking = 0
        for dependent in list(self._dependents.get(uid, ())):
            found = self._storage.get(*dependent)
            if found is None:
                continue
            blocking += _blocks(found.object, uid)
            if "deletionTimestamp" not in found.object["metadata"]:
                await self._collect(dependent, found)
                blocking -= _blocks(found.object, uid) and self._storage.get(*dependent) is None
        if not blocking:
            current = self._storage.get(*place)
            if current is not None:
                left = [name for name in current.object["metadata"].get("finalizers", []) if name != FOREGROUND]
                self._write(place[0], current.object, {"finalizers": left})

    async def _collect(self, place: Place, stored: Stored) -> None:
        """Delete an object or drop its absent owners, depending on its owners."""
        states = {
            reference["uid"]: self._owner_state(reference, stored.namespace)
            for reference in stored.object["metadata"].get("ownerReferences", [])
        }
        if not states:
            return
        others = {uid for uid, state in states.items() if state != "solid"}
        if len(others) < len(states):
            if others:
                self._disown(place[0], stored.object, others)
            return
        waiting = "waiting" in states.values() and self._dependents.get(stored.object["metadata"]["uid"])
        await self._delete(place, stored, "Foreground" if waiting else "Background")

    def _owner_state(self, reference: Object, namespace: str) -> OwnerState:
        """Return the state of an owner; an owner of an unknown kind counts as solid."""
        group, _, version = reference["apiVersion"].rpartition("/")
        row = self._table.by_kind(group, version, reference["kind"])
        if row is None:
            return "solid"
        key = (namespace if row.resource.namespaced else "", reference["name"])
        owner = self._storage.get(row.storage, key)
        if owner is None or owner.object["metadata"]["uid"] != reference["uid"]:
            return "absent"
        return "waiting" if _collecting(owner.object) else "solid"

    async def _delete(self, place: Place, stored: Stored, propagation: str) -> None:
        row = self._table.stored(place[0])
        metadata = stored.object["metadata"]
        if row is None or "deletionTimestamp" in metadata:
            return
        held = FOREGROUND in metadata.get("finalizers", [])
        delete = DeleteOptions(uid=metadata["uid"], propagation="" if held else propagation)
        member = Route(row=row, verb="delete", namespace=stored.namespace, name=stored.name)
        await self._writer.delete(member, delete, WriteOptions(user=COLLECTOR))

    def _disown(self, collection: str, obj: Object, uids: set[str]) -> None:
        references = obj["metadata"].get("ownerReferences", [])
        left = [reference for reference in references if reference["uid"] not in uids]
        self._write(collection, obj, {"ownerReferences": left})

    def _write(self, collection: str, obj: Object, metadata: dict[str, Any]) -> None:
        row = self._table.stored(collection)
        if row is not None:
            settle(self._storage, row, obj | {"metadata": tidy(obj["metadata"] | metadata)})


def _owner_uids(stored: Stored | None) -> list[str]:
    if stored is None:
        return []
    return [owner.get("uid") or "" for owner in objects.metadata(stored.object).get("ownerReferences") or ()]


def _collecting(obj: Object) -> bool:
    """Return whether an object is deleted in the foreground."""
    metadata = obj["metadata"]
    return "deletionTimestamp" in metadata and FOREGROUND in metadata.get("finalizers", [])


def _blocks(obj: Object, owner: str) -> bool:
    references = obj["metadata"].get("ownerReferences", [])
    return any(reference["uid"] == owner and reference.get("blockOwnerDeletion") for reference in references)
