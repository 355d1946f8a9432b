"""Informer caches of the listings that grow with the cluster, from the first review until some minutes after the last.

admission.py reads from the caches, wiring.py runs them; sharing.py serves the other listings.

Reasons and figures: docs/decisions/0016-caches-for-reviews.md.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
from typing import TYPE_CHECKING, NoReturn, Protocol

import structlog

from upgrade_manager.kube.clock import loop_time
from upgrade_manager.kube.errors import KubeError
from upgrade_manager.kube.informer import Informer
from webhook.cluster import NotInstalled

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from random import Random

    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object
    from webhook.cluster import ClusterReader, Listing

#: Seconds for which the caches are kept after the last review, in which a user repairs the cluster and tries again.
KEEP = 300.0
#: Seconds to read the objects that users change just before they create a plan.
CHANGES_TIMEOUT = 1.0


log = structlog.get_logger(__name__)


class Caches(Protocol):
    """Caches of a cluster, for reviews."""

    async def reader(self) -> ClusterReader | None:
        """Return a reader of the caches for one review, or None to read the cluster itself."""
        ...

    def start(self) -> None:
        """Fill the caches for later reviews, after the current one has read the cluster itself."""
        ...


class ClusterCaches:
    """Keeps informers of some listings while plans are reviewed; `live` reads the other listings.

    `changes` selects objects that users change just before they create a plan. While such an object exists, reviews do
    not use the caches.
    """

    def __init__(
        self, client: Client, *, listings: Sequence[Listing], changes: Listing, live: ClusterReader, random: Random
    ) -> None:
        self._client = client
        self._listings = listings
        self._changes = changes
        self._live = live
        self._random = random
        #: Empty while the caches are stopped.
        self._informers: Mapping[Listing, Informer] = {}
        self._requested = asyncio.Event()
        self._last_review = 0.0

    async def run(self) -> NoReturn:
        """Start and stop the informers until cancelled."""
        while True:
            await self._requested.wait()
            try:
                await self._run_informers()
                release_memory()
            except* Exception:  # without caches, reviews read the cluster themselves
                log.exception("caches failed unexpectedly")
                await asyncio.sleep(KEEP)
            self._requested.clear()

    async def reader(self) -> ClusterReader | None:
        """See Caches."""
        self._last_review = loop_time()
        informers = self._informers
        if not self.are_in_sync() or await self._is_changed():
            return None
        return _CacheReader(informers, self._live)

    def are_in_sync(self) -> bool:
        """Return True if all informers run and have synced, and none of their watches fails."""
        informers = self._informers.values()
        return bool(informers) and all(one.has_synced and not one.failing_for for one in informers)

    async def _is_changed(self) -> bool:
        """Return True if an object of `changes` exists, or if `changes` cannot be read in time."""
        try:
            async with asyncio.timeout(CHANGES_TIMEOUT):
                return bool(await self._live.list(self._changes))
        except (KubeError, NotInstalled, TimeoutError):
            return True

    def start(self) -> None:
        """See Caches."""
        self._requested.set()

    async def _run_informers(self) -> None:
        """Run the informers until the last review ended KEEP seconds ago."""
        self._informers = {
            one: Informer(self._client, one, name="webhook", transform=one.slim, random=self._random)
            for one in self._listings
        }
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(informer.run()) for informer in self._informers.values()]
                await self._wait_until_idle()
                for task in tasks:
                    task.cancel()
        finally:
            self._informers = {}

    async def _wait_until_idle(self) -> None:
        while (left := self._last_review + KEEP - loop_time()) > 0:  # noqa: ASYNC110  # a later review extends it
            await asyncio.sleep(left)


def release_memory() -> None:
    """Return freed memory to the system, because the C library's heap keeps the memory that reviews have used."""
    gc.collect()
    # Only glibc has malloc_trim.
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)


class _CacheReader:
    """Reads listings from the informers, and listings without an informer from the API server."""

    def __init__(self, informers: Mapping[Listing, Informer], live: ClusterReader) -> None:
        self._informers = informers
        self._live = live

    async def list(self, listing: Listing) -> Sequence[Object]:
        """See ClusterReader."""
        informer = self._informers.get(listing)
        if informer is None:
            return await self._live.list(listing)
        needed = informer.store.derive(listing.is_needed)
        return [obj for obj, is_needed in zip(informer.store.list(), needed, strict=True) if is_needed]
