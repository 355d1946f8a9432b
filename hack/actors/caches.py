"""Informers that all actors share: each kind is decoded once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import NotFound
from upgrade_manager.kube.informer import Informer
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.store import ChangeKind

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.patch import MergePatch
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
        """Return namespaces and names, sorted."""
        return sorted(self._keys.get(value, ()))


class Cache:
    """An informer of one kind; subscribers register before it runs."""

    def __init__(self, client: Client, resource: Resource, *, field_selector: str, random: Random) -> None:
        self._indexes = {BY_NODE: Index(_node_of), BY_OWNER: Index(objects.owner_uid), BY_VOLUME: Index(_volume_of)}
        self._listeners: list[Callable[[Change], None]] = []
        self._resource = resource
        self._informer = Informer(
            client,
            Selection(resource=resource, field_selector=field_selector),
            handlers=(self._notify,),
            random=random,
        )

    @property
    def store(self) -> Store:
        """Return the cached objects."""
        return self._informer.store

    def by_index(self, index: str, value: str) -> list[Object]:
        """Return the objects with that value, ordered by namespace and name."""
        found = (self.store.get(name, namespace) for namespace, name in self._indexes[index].keys(value))
        return [obj for obj in found if obj is not None]

    def subscribe(self, listener: Callable[[Change], None]) -> None:
        """Register a listener; listeners are called in the order of subscription."""
        self._listeners.append(listener)

    async def seen(self, written: Object, *, unless: Callable[[], bool] = lambda: False) -> None:
        """Wait, without a time limit, until the store has a written object, since the next decision reads it.

        After an outage of the API server the watches of different kinds resume at different times. `unless` is checked
        now and then: the caller may have to end the outage.
        """
        while not await self._informer.wait_for_version(objects.resource_version(written)):
            if unless():
                return

    async def patch(self, client: Client, obj: Object, patch: MergePatch, *, subresource: str = "status") -> None:
        """Patch a cached object and wait until it is seen; a deleted object is skipped."""
        name, namespace = objects.name(obj), objects.namespace(obj)
        try:
            written = await client.patch(self._resource, name, patch, namespace=namespace, subresource=subresource)
        except NotFound:
            return
        await self.seen(written)

    async def run(self) -> None:
        """Run until cancelled."""
        await self._informer.run()

    async def synced(self) -> None:
        """Wait for the first list."""
        await self._informer.wait_for_sync()

    def _notify(self, change: Change) -> None:
        for index in self._indexes.values():
            index.follow(change)
        for listener in self._listeners:
            listener(change)


class Caches:
    """The shared informers, created when an actor first requests a kind in its constructor."""

    def __init__(self, client: Client, *, random: Random) -> None:
        self._client = client
        self._random = random
        self._caches: dict[tuple[Resource, str], Cache] = {}

    def of(self, resource: Resource, *, field_selector: str = "") -> Cache:
        """Return the cache of a kind, or of a selection of it."""
        key = (resource, field_selector)
        if key not in self._caches:
            self._caches[key] = Cache(self._client, resource, field_selector=field_selector, random=self._random)
        return self._caches[key]

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as group:
            for (resource, _), cache in self._caches.items():
                group.create_task(cache.run(), name=f"cache {resource.name}")

    async def synced(self) -> None:
        """Wait until every cache is synced."""
        for cache in self._caches.values():
            await cache.synced()
