"""Readers that share lists between checks and reviews, and still return the latest state.

wiring.py puts `SharedReader` before cluster.py's reader; caches.py serves the large listings.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from upgrade_manager.kube.errors import KubeError
from webhook.cluster import NotInstalled

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from upgrade_manager.kube.objects import Object
    from webhook.cluster import ClusterReader, Listing


class SnapshotReader:
    """Reads each listing once, so that all checks of a review see the same objects."""

    def __init__(self, cluster: ClusterReader) -> None:
        self._cluster = cluster
        self._locks: defaultdict[Listing, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._found: dict[Listing, Sequence[Object]] = {}

    async def list(self, listing: Listing) -> Sequence[Object]:
        """See ClusterReader."""
        async with self._locks[listing]:
            if listing not in self._found:
                self._found[listing] = await self._cluster.list(listing)
            return self._found[listing]


@dataclass(slots=True)
class _Slot:
    """The lists of one listing, one after another."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0
    #: The number of lists that have begun, and the number of the last ended list, with its objects or its error.
    begun: int = 0
    ended: int = 0
    objects: Sequence[Object] = ()
    error: KubeError | NotInstalled | None = None


class SharedReader:
    """Lets reviews that wait at the same time share a list.

    A list, or its error, is shared only with callers that waited before the list began, so that each caller sees the
    state at its call or a later state. Fifty concurrent callers need two lists.
    """

    def __init__(self, cluster: ClusterReader) -> None:
        self._cluster = cluster
        self._slots: dict[Listing, _Slot] = {}

    async def list(self, listing: Listing) -> Sequence[Object]:
        """See ClusterReader."""
        with self._slot(listing) as slot:
            begun_before = slot.begun
            async with slot.lock:
                if slot.ended <= begun_before:
                    await self._read(listing, slot)
                if slot.error is not None:
                    raise slot.error
                return slot.objects

    async def _read(self, listing: Listing, slot: _Slot) -> None:
        slot.begun += 1
        try:
            slot.objects, slot.error = await self._cluster.list(listing), None
        except (KubeError, NotInstalled) as error:
            slot.objects, slot.error = (), error
        # After a cancellation this line is not reached, and the next caller lists again.
        slot.ended = slot.begun

    @contextmanager
    def _slot(self, listing: Listing) -> Iterator[_Slot]:
        """Keep the objects only while a caller waits."""
        slot = self._slots.setdefault(listing, _Slot())
        slot.users += 1
        try:
            yield slot
        finally:
            slot.users -= 1
            if not slot.users:
                del self._slots[listing]
