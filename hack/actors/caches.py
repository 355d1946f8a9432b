"""What all actors read: one informer a kind, shared, so that a thousand nodes are decoded once and not ten times."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from upgrade_manager.kube import objects
from upgrade_manager.kube.informer import Informer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from random import Random

    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.resource import Resource
    from upgrade_manager.kube.store import Change, Store

BY_NODE = "node"
BY_OWNER = "owner"
BY_VOLUME = "volume"


def _node_of(obj: Object) -> Iterable[str]:
    node = objects.spec(obj).get("nodeName") or objects.status(obj).get("nodeName")
    return (node,) if node else ()


def _owner_of(obj: Object) -> Iterable[str]:
    owner = objects.owner_uid(obj)
    return (owner,) if owner else ()


def _volume_of(obj: Object) -> Iterable[str]:
    volume = objects.spec(obj).get("volumeName")
    return (volume,) if volume else ()


class Cache:
    """One kind; `subscribe` before it runs."""

    def __init__(self, client: Client, resource: Resource, *, field_selector: str, random: Random) -> None:
        self._listeners: list[Callable[[Change], None]] = []
        self._informer = Informer(
            client,
            resource,
            field_selector=field_selector,
            indexers={BY_NODE: _node_of, BY_OWNER: _owner_of, BY_VOLUME: _volume_of},
            handlers=(self._tell,),
            random=random,
        )

    @property
    def store(self) -> Store:
        """The objects."""
        return self._informer.store

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
