"""The objects of one kind as last seen, in memory, with indexes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from upgrade_manager.kube.objects import key, resource_version, uid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from upgrade_manager.kube.objects import Object

T = TypeVar("T")
Key: TypeAlias = tuple[str, str]
#: Inside `Store`, `list` is a method.
Objects: TypeAlias = "list[Object]"
Facts: TypeAlias = "list[T]"
Keys: TypeAlias = "list[Key]"


class ChangeKind(Enum):
    """What happened to an object."""

    ADDED = "added"
    UPDATED = "updated"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class Change:
    """One step of one object, as handlers are told of it."""

    kind: ChangeKind
    #: The object now; of a deleted one its last known state.
    obj: Object
    #: The object before, for updates.
    old: Object | None = None
    #: Whether it comes from the first list, that is, may be old news.
    initial: bool = False
    #: Whether the deletion itself was missed and only a list showed it: states before it may have been missed too.
    tombstone: bool = False


Changes: TypeAlias = list[Change]


class Store:
    """What readers see. Objects are shared: read them, never write into them.

    Only an informer calls `replace`, `put` and `drop` and sets `resource_version`. Each is one step between two awaits,
    so readers never see half a list. An object that gives way to one of the same name with another uid counts as
    deleted and added.
    """

    def __init__(self, *, indexers: Mapping[str, Callable[[Object], Iterable[str]]]) -> None:
        self._indexers = dict(indexers)
        self._objects: dict[Key, Object] = {}
        #: Index name -> value -> keys that have it; no empty sets.
        self._indexes: dict[str, dict[str, set[Key]]] = {name: {} for name in indexers}
        #: All keys in order, until the set of keys changes.
        self._ordered: list[Key] | None = None
        #: Function -> what it made of each object, unless that has changed since it was last asked.
        self._made: dict[Callable[[Object], Any], dict[Key, Any]] = {}
        #: Where the store stands in the server's history; "" before the first list.
        self.resource_version = ""

    def __len__(self) -> int:
        return len(self._objects)

    def get(self, name: str, namespace: str = "") -> Object | None:
        """The object of that name, or None."""
        return self._objects.get((namespace, name))

    def list(self) -> Objects:
        """All objects, ordered by namespace and name."""
        return [self._objects[key] for key in self._keys()]

    def made(self, make: Callable[[Object], T]) -> Facts[T]:
        """What `make` gives for each object, in the order of `list`; it is called once for each version of an object.

        So a look at all objects costs what has changed since the last one. `make` must depend on the object alone, and
        be a function of a module or a class: what it gave is kept with the store.
        """
        made = self._made.setdefault(make, {})
        if len(made) < len(self._objects):
            for where in self._objects.keys() - made.keys():
                made[where] = make(self._objects[where])
        return [made[where] for where in self._keys()]

    def by_index(self, index: str, value: str) -> Objects:
        """The objects for which the indexer of that name gave that value, ordered by namespace and name."""
        return [self._objects[key] for key in sorted(self._indexes[index].get(value, ()))]

    def replace(self, items: Iterable[Object], version: str) -> Changes:
        """Hold exactly these objects from now on; the changes that this makes, deletions first.

        Objects whose uid and resourceVersion are known already stay, without a change.
        """
        incoming = {key(obj): obj for obj in items}
        is_first, self.resource_version = not self.resource_version, version
        if not self._objects:
            return self._fill(incoming, initial=is_first)
        gone = [known for known in self._objects if known not in incoming]
        deletions = [Change(ChangeKind.DELETED, self._remove(known), tombstone=True) for known in gone]
        additions: Changes = []
        for where, obj in incoming.items():
            for change in self._set(where, obj, tombstone=True):
                (deletions if change.kind is ChangeKind.DELETED else additions).append(change)
        return deletions + additions

    def put(self, obj: Object) -> Changes:
        """Hold this object; nothing changes when exactly this version is there."""
        return self._set(key(obj), obj, tombstone=False)

    def drop(self, obj: Object) -> Changes:
        """Forget the object of this one's name; the change carries the state given here, the last one."""
        if key(obj) not in self._objects:
            return []
        self._remove(key(obj))
        return [Change(ChangeKind.DELETED, obj)]

    def _keys(self) -> Keys:
        if self._ordered is None:
            self._ordered = sorted(self._objects)
        return self._ordered

    def _fill(self, incoming: dict[Key, Object], *, initial: bool) -> Changes:
        """The first list, as a rule, and the longest step that there is: nothing has to be compared."""
        self._objects = incoming
        self._ordered = None
        if self._indexers:
            for where, obj in incoming.items():
                self._reindex(where, None, obj)
        return [Change(ChangeKind.ADDED, obj, initial=initial) for obj in incoming.values()]

    def _add(self, where: Key, obj: Object) -> Change:
        if self._indexers:
            self._reindex(where, None, obj)
        self._objects[where] = obj
        self._ordered = None
        return Change(ChangeKind.ADDED, obj)

    def _set(self, where: Key, obj: Object, *, tombstone: bool) -> Changes:
        old = self._objects.get(where)
        if old is None:
            return [self._add(where, obj)]
        is_same_object = uid(old) == uid(obj)
        if is_same_object and _is_same_version(old, obj):
            return []
        if self._indexers:
            self._reindex(where, old, obj)
        self._forget(where)
        self._objects[where] = obj
        if not is_same_object:
            return [Change(ChangeKind.DELETED, old, tombstone=tombstone), Change(ChangeKind.ADDED, obj)]
        return [Change(ChangeKind.UPDATED, obj, old)]

    def _remove(self, where: Key) -> Object:
        old = self._objects.pop(where)
        self._ordered = None
        self._forget(where)
        self._reindex(where, old, None)
        return old

    def _forget(self, where: Key) -> None:
        for made in self._made.values():
            made.pop(where, None)

    def _reindex(self, where: Key, old: Object | None, new: Object | None) -> None:
        for name, values_of in self._indexers.items():
            before = set(values_of(old)) if old is not None else set()
            after = set(values_of(new)) if new is not None else set()
            if before == after:
                continue
            index = self._indexes[name]
            for value in before - after:
                index[value].discard(where)
                if not index[value]:
                    del index[value]
            for value in after - before:
                index.setdefault(value, set()).add(where)


def _is_same_version(old: Object, new: Object) -> bool:
    version = resource_version(new)
    return version != "" and version == resource_version(old)
