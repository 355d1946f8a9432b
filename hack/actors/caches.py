"""What all actors read: one informer a kind, shared, so that a thousand nodes are decoded once and not ten times."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from upgrade_manager.kube import objects
from upgrade_manager.kube.informer import Informer
from upgrade_manager.kube.store import ChangeKind

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.resources import Resource
    from upgrade_manager.kube.store import Change, Store

BY_NODE = "node"
BY_OWNER = "owner"
BY_VOLUME = "volume"


def _node_of(obj: Object) -> str:
    return objects.spec(obj).get("nodeName") or objects.status(obj).get("nodeName") or ""


def _volume_of(obj: Object) -> str:
    return objects.spec(obj).get("volumeName") or ""


class Index:
    """Keys of the objects of one store, by a value that is computed from each."""

    def __init__(self, value_of: Callable[[Object], str]) -> None:
        self._value_of = value_of
        self._values: dict[tuple[str, str], str] = {}
        self._keys: dict[str, set[tuple[str, str]]] = {}

    def follow(self, change: Change) -> None:
        """Apply a change of the store."""
        key = objects.key(change.obj)
        known = self._values.pop(key, "")
        if known:
            self._keys[known].discard(key)
        value = self._value_of(change.obj)
        if value and change.kind is not ChangeKind.DELETED:
            self._values[key] = value
            self._keys.setdefault(value, set()).add(key)

    def keys(self, value: str) -> list[tuple[str, str]]:
        """Namespaces and names, in order."""
        return sorted(self._keys.get(value, ()))


class Cache:
    """One kind; `subscribe` before it runs."""

    def __init__(self, client: Client, resource: Resource, *, field_selector: str, random: Random) -> None:
        self._indexes = {BY_NODE: Index(_node_of), BY_OWNER: Index(objects.owner_uid), BY_VOLUME: Index(_volume_of)}
        self._listeners: list[Callable[[Change], None]] = []
        self._informer = Informer(
            client,
            resource,
            field_selector=field_selector,
            handlers=(self._tell,),
            random=random,
        )

    @property
    def store(self) -> Store:
        """The objects."""
        return self._informer.store

    def by_index(self, index: str, value: str) -> list[Object]:
        """The objects with that value, ordered by namespace and name."""
        found = (self.store.get(name, namespace) for namespace, name in self._indexes[index].keys(value))
        return [obj for obj in found if obj is not None]

    def subscribe(self, listener: Callable[[Change], None]) -> None:
        """Have every change told, in the order of subscription."""
        self._listeners.append(listener)

    async def seen(self, written: Object) -> None:
        """Wait until what was just written is in the store, however long: what follows decides from it.

        After an outage of the API server one kind may be watched again long before another.
        """
        while not await self._informer.observed(objects.resource_version(written)):
            continue

    async def run(self) -> None:
        """For ever."""
        await self._informer.run()

    async def synced(self) -> None:
        """Returns when the first list is there."""
        await self._informer.synced()

    def _tell(self, change: Change) -> None:
        for index in self._indexes.values():
            index.follow(change)
        for listener in self._listeners:
            listener(change)


class Caches:
    """All of them; a kind is cached when an actor first asks for it, which it does when it is made."""

    def __init__(self, client: Client, *, random: Random) -> None:
        self._client = client
        self._random = random
        self._caches: dict[tuple[Resource, str], Cache] = {}

    def of(self, resource: Resource, *, field_selector: str = "") -> Cache:
        """The cache of a kind, or of a selection of it."""
        key = (resource, field_selector)
        if key not in self._caches:
            self._caches[key] = Cache(self._client, resource, field_selector=field_selector, random=self._random)
        return self._caches[key]

    async def run(self) -> None:
        """For ever."""
        async with asyncio.TaskGroup() as group:
            for (resource, _), cache in self._caches.items():
                group.create_task(cache.run(), name=f"cache {resource.name}")

    async def synced(self) -> None:
        """Returns when every cache is filled."""
        for cache in self._caches.values():
            await cache.synced()
