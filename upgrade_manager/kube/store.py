"""An in-memory store of the objects of one resource (client-go's ThreadSafeStore, without threads)."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from upgrade_manager.kube.objects import key, resource_version, uid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from upgrade_manager.kube.objects import Object

T = TypeVar("T")
Key: TypeAlias = tuple[str, str]
#: Aliases, because inside `Store` the name `list` is a method.
Objects: TypeAlias = "list[Object]"
Derived: TypeAlias = "list[T]"
Keys: TypeAlias = "list[Key]"
#: The states of changed objects that a store remembers; readers that are further behind read all objects again.
REMEMBERED = 256


class ChangeKind(Enum):
    """The type of a change."""

    ADDED = "added"
    UPDATED = "updated"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class Change:
    """One change of one object, as handlers receive it."""

    kind: ChangeKind
    #: The new state; for DELETED the last known state.
    obj: Object
    #: The previous state, for UPDATED.
    old: Object | None = None


Changes: TypeAlias = list[Change]


class Store:
    """Holds objects by namespace and name. Objects are shared: never modify them.

    Only an informer writes to it. Writes are synchronous, so readers never see half a list. An object that is replaced
    by one of the same name with another uid counts as deleted and added.
    """

    def __init__(self) -> None:
        self._objects: dict[Key, Object] = {}
        #: All keys in order; None after the set of keys has changed.
        self._sorted: Keys | None = None
        #: By function: its results for the current objects.
        self._derived: dict[Callable[[Object], Any], dict[Key, Any]] = {}
        #: By function: the results for the present keys, in their order, and the keys whose objects have changed since.
        self._lists: dict[Callable[[Object], Any], Derived[Any]] = {}
        self._stale: dict[Callable[[Object], Any], set[Key]] = {}
        #: By function: the keys of the current objects by its results.
        self._indices: dict[Callable[[Object], str], dict[str, set[Key]]] = {}
        #: The latest states before and after changes, and the number of all of them; from the first `mark` on, because
        #: the states of a plan are large.
        self._touched: deque[Object] | None = None
        self._count = 0
        #: The resourceVersion that the store has reached; "" before the first list.
        self.resource_version = ""

    def __len__(self) -> int:
        return len(self._objects)

    def get(self, name: str, namespace: str = "") -> Object | None:
        """Return the object of that name, or None."""
        return self._objects.get((namespace, name))

    def list(self) -> Objects:
        """Return all objects, ordered by namespace and name."""
        return [self._objects[where] for where in self._keys()]

    def derive(self, function: Callable[[Object], T]) -> Sequence[T]:
        """Return the function's result for each object, in the order of `list`; the caller must not change it.

        Results are cached by function and version of the object, so the function must depend on the object alone and be
        defined once, at module level or as a class.
        """
        found, stale = self._lists.get(function), self._stale.pop(function, ())
        if found is None:
            found = [self.derive_one(function, where) for where in self._keys()]
        elif stale:
            found = self._with_changes(found, function, stale)
        self._lists[function] = found
        return found

    def _with_changes(self, known: Derived[T], function: Callable[[Object], T], stale: Iterable[Key]) -> Derived[T]:
        """Return the list with the results for these keys; the same list if they are equal."""
        places = [(bisect_left(self._keys(), where), self.derive_one(function, where)) for where in stale]
        changes = [(place, result) for place, result in places if known[place] != result]
        found = known.copy() if changes else known
        for place, result in changes:
            found[place] = result
        return found

    def derive_one(self, function: Callable[[Object], T], where: Key) -> T:
        """Return the function's result for the object of that key, which must exist; see `derive`."""
        results = self._derived.setdefault(function, {})
        if where not in results:
            results[where] = function(self._objects[where])
        result: T = results[where]
        return result

    def keys_by(self, function: Callable[[Object], str], value: str) -> Keys:
        """Return the ordered keys of the objects with this result of the function (client-go's Indexer.IndexKeys).

        The condition of `derive` holds for the function, too.
        """
        index = self._indices.get(function)
        if index is None:
            index = self._indices[function] = {}
            for where, obj in self._objects.items():
                index.setdefault(function(obj), set()).add(where)
        return sorted(index.get(value, ()))

    def list_by(self, function: Callable[[Object], str], value: str) -> Objects:
        """Return the objects with this result of the function, in the order of `list`; see `keys_by`."""
        return [self._objects[where] for where in self.keys_by(function, value)]

    def mark(self) -> int:
        """Return the number of states that changes have touched so far, for `touched_since`."""
        if self._touched is None:
            self._touched = deque(maxlen=REMEMBERED)
        return self._count

    def touched_since(self, mark: int) -> Objects | None:
        """Return the states before and after each change since that `mark`; None if some are forgotten."""
        count = self._count - mark
        if self._touched is None or count > len(self._touched):
            return None
        return list(self._touched)[-count:] if count else []

    def replace(self, items: Iterable[Object], version: str) -> Changes:
        """Replace the content with these objects; return the changes, deletions first.

        Objects with an unchanged uid and resourceVersion cause no change.
        """
        incoming = {key(obj): obj for obj in items}
        self.resource_version = version
        if not self._objects:
            # Fast path for the first list.
            self._objects, self._sorted = incoming, None
            for where, obj in incoming.items():
                self._changed(where, None, obj)
            return [Change(ChangeKind.ADDED, obj) for obj in incoming.values()]
        deleted = [known for known in self._objects if known not in incoming]
        changes = [Change(ChangeKind.DELETED, self._remove(known)) for known in deleted]
        changes += [change for where, obj in incoming.items() for change in self._set(where, obj)]
        return sorted(changes, key=lambda change: change.kind is not ChangeKind.DELETED)

    def put(self, obj: Object) -> Changes:
        """Add or update an object; no change if the store has this version."""
        return self._set(key(obj), obj)

    def delete(self, obj: Object) -> Changes:
        """Remove the object of this name; the change has the given state, which is the last one."""
        if key(obj) not in self._objects:
            return []
        self._remove(key(obj))
        return [Change(ChangeKind.DELETED, obj)]

    def _keys(self) -> Keys:
        if self._sorted is None:
            self._sorted = sorted(self._objects)
        return self._sorted

    def _set(self, where: Key, obj: Object) -> Changes:
        old = self._objects.get(where)
        is_same_object = old is not None and uid(old) == uid(obj)
        if old is not None and is_same_object and _is_same_version(old, obj):
            return []
        self._objects[where] = obj
        self._changed(where, old, obj)
        if old is None:
            self._sorted = None
            return [Change(ChangeKind.ADDED, obj)]
        if not is_same_object:
            return [Change(ChangeKind.DELETED, old), Change(ChangeKind.ADDED, obj)]
        return [Change(ChangeKind.UPDATED, obj, old)]

    def _remove(self, where: Key) -> Object:
        self._sorted = None
        removed = self._objects.pop(where)
        self._changed(where, removed, None)
        return removed

    def _changed(self, where: Key, old: Object | None, new: Object | None) -> None:
        """Keep what is derived from the objects up to date."""
        if old is None or new is None:
            self._lists.clear()
            self._stale.clear()
        for function in self._lists:
            self._stale.setdefault(function, set()).add(where)
        for results in self._derived.values():
            results.pop(where, None)
        for function, index in self._indices.items():
            if old is not None:
                keys = index[function(old)]
                keys.remove(where)
                if not keys:
                    del index[function(old)]
            if new is not None:
                index.setdefault(function(new), set()).add(where)
        if self._touched is not None:
            states = [state for state in (old, new) if state is not None]
            self._touched.extend(states)
            self._count += len(states)


def _is_same_version(old: Object, new: Object) -> bool:
    version = resource_version(new)
    return version != "" and version == resource_version(old)
