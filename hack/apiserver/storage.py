"""The object store: one collection per kind and one revision counter; watches are notified of changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from hack.apiserver.history import Entry, History
from hack.apiserver.stored import Stored, stamped

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from datetime import datetime

    from hack.apiserver.admission import Object

#: Namespace (empty for cluster-scoped objects) and name.
Key = tuple[str, str]


class Collection:
    """The objects of one kind in all its versions."""

    def __init__(self, name: str) -> None:
        #: plural.group
        self.name = name
        self.objects: dict[Key, Stored] = {}
        self.history = History()
        #: One per open watch, in the order of opening; set at each change.
        self.wakers: dict[asyncio.Event, None] = {}
        #: Closes open watches.
        self.closed = False
        #: The sorted keys; None after a creation or deletion.
        self._order: list[Key] | None = None

    def states(self, namespace: str = "") -> list[Stored]:
        """Return the objects in etcd's order: by namespace and name."""
        if self._order is None:
            self._order = sorted(self.objects)
        return [self.objects[key] for key in self._order if not namespace or key[0] == namespace]

    def put(self, key: Key, entry: Entry) -> None:
        """Apply a change."""
        if entry.kind == "DELETED":
            del self.objects[key]
        else:
            self.objects[key] = entry.stored
        if entry.kind != "MODIFIED":
            self._order = None
        self.history.append(entry)
        self.wake()

    def wake(self) -> None:
        """Wake all open watches."""
        for waker in self.wakers:
            waker.set()

    def close(self) -> None:
        """Close all open watches, when the server shuts down or the kind is removed."""
        self.closed = True
        self.wake()


class Storage:
    """All collections. Every change increments the revision and is atomic."""

    def __init__(self, *, now: Callable[[], datetime]) -> None:
        self._now = now
        self._collections: dict[str, Collection] = {}
        #: The revision of the last change; starts at 1, since 0 means "any" in requests.
        self.revision = 1
        #: Called synchronously after every change with the collection's name.
        self.observers: list[Callable[[str, Entry], None]] = []

    def collection(self, name: str) -> Collection:
        """Return the collection of a kind, by plural.group; create it at first use."""
        found = self._collections.get(name)
        if found is None:
            found = self._collections[name] = Collection(name)
        return found

    def collections(self) -> list[Collection]:
        """Return all existing collections."""
        return list(self._collections.values())

    def drop(self, name: str) -> None:
        """Remove a collection and close its watches."""
        removed = self._collections.pop(name, None)
        if removed is not None:
            removed.close()

    def objects(self, name: str, namespace: str = "") -> list[Object]:
        """Return the objects of a kind by plural.group, in order; callers must not change them."""
        return [stored.object for stored in self.collection(name).states(namespace)]

    def get(self, name: str, key: Key) -> Stored | None:
        """Return the current state of one object."""
        return self.collection(name).objects.get(key)

    def write(self, name: str, key: Key, obj: Object) -> Stored:
        """Create or replace an object."""
        previous = self.get(name, key)
        stored = stamped(obj, self._step())
        kind: Literal["ADDED", "MODIFIED"] = "ADDED" if previous is None else "MODIFIED"
        self._commit(name, key, Entry(kind=kind, stored=stored, previous=previous, time=self._time()))
        return stored

    def remove(self, name: str, key: Key) -> Stored:
        """Delete an object; return its last state with the revision of the deletion."""
        previous = self.collection(name).objects[key]
        stored = stamped(previous.object, self._step())
        self._commit(name, key, Entry(kind="DELETED", stored=stored, previous=previous, time=self._time()))
        return stored

    def compact(self) -> None:
        """Drop the history of every collection: a watch from an older revision gets 410."""
        for collection in self._collections.values():
            collection.history.compact(self.revision)

    def _step(self) -> int:
        self.revision += 1
        return self.revision

    def _time(self) -> float:
        return self._now().timestamp()

    def _commit(self, name: str, key: Key, entry: Entry) -> None:
        self.collection(name).put(key, entry)
        for observer in list(self.observers):
            observer(name, entry)
