"""Lists and watches one resource and keeps a store in sync with the API server (client-go's Reflector).

informer.py runs it, with its store.py as the sink.

The rules are those of tools/cache/reflector.go: resourceVersion and page size of lists, streaming
lists (watch_list.py), the reaction to errors (watch_errors.py), and the delays (`retry.Backoff`).
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn, Protocol

import structlog

from upgrade_manager.kube.clock import loop_time
from upgrade_manager.kube.decoder import Undecodable
from upgrade_manager.kube.errors import KubeError, NotFound, Transient
from upgrade_manager.kube.pager import PAGE_SIZE, ListOptions, ObjectList, list_all_pages
from upgrade_manager.kube.retry import Backoff
from upgrade_manager.kube.watch import EventStore, apply_event
from upgrade_manager.kube.watch_errors import (
    QUICK,
    VERY_SHORT,
    Ending,
    after_close,
    after_connect,
    after_error_event,
    after_list,
    is_version_unavailable,
    may_list_instead,
)
from upgrade_manager.kube.watch_list import InitialEvents, is_unsupported

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.decoder import WatchEvent
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.pager import Selection
    from upgrade_manager.kube.watch import StreamWatcher

_log = structlog.get_logger(__name__)

#: Seconds; each watch requests a random timeout in between.
WATCH_TIMEOUT = (300, 599)
#: Versions of lists that the server may page, because they are not read from its watch cache.
_PAGED_VERSIONS = {"", "0"}


class ReflectorStore(EventStore, Protocol):
    """The store that a reflector fills. Its methods are synchronous."""

    def transform(self, obj: Object) -> Object:
        """Return the object to store; the given one may be modified in place."""
        ...

    def replace(self, items: list[Object], version: str) -> None:
        """Replace the content with these transformed objects."""
        ...

    def advance(self, version: str, *, events: int) -> None:
        """Record that so many events were received and the store has reached that resourceVersion."""
        ...


class Reflector:
    """Fills a store from one selection. `on_restart` is called with `list` or `watch` and a reason."""

    def __init__(
        self,
        client: Client,
        selection: Selection,
        *,
        store: ReflectorStore,
        random: Random,
        on_restart: Callable[[str, str], None],
    ) -> None:
        self._client = client
        self._selection = selection
        self._store = store
        self._backoff = Backoff(random=random)
        self._random = random
        self._on_restart = on_restart
        self._log = _log.bind(resource=selection.resource.name)
        #: The error of the last list; "" after a success.
        self.last_error = ""
        #: Loop time of the first failure since the last open watch; None while there was none.
        self.failing_since: float | None = None
        #: Loop time at which the open watch began; None while none is open.
        self.following_since: float | None = None
        #: The version at which the next watch starts, the minimum one of the next list; "" before the first list.
        self._version = ""
        #: True if the server refused a list at that version; the next one requests the latest state.
        self._is_version_unavailable = False
        #: True if the server pages lists at version "0", that is, has no watch cache.
        self._is_paged = False
        #: Consecutive watches that were closed at once after an event.
        self._quick_watches = 0
        #: True if events arrive in the order of their versions.
        self._is_ordered = True

    async def run(self) -> NoReturn:
        """List and watch until cancelled; raises only what the store raises."""
        reason = "start"
        while True:
            ending = await self._list_and_watch(reason)
            reason = ending.reason
            await asyncio.sleep(self._backoff.failed(at_least=ending.retry_after))

    async def _list_and_watch(self, reason: str) -> Ending:
        """Run one cycle: a list, then watches until one requires a new list."""
        async with AsyncExitStack() as stack:
            try:
                watcher = await self._sync(stack)
            except KubeError as error:
                self.last_error = str(error)
                if isinstance(error, NotFound):
                    await self._discover()
                return self._logged(after_list(error), error)
            self.last_error = ""
            self._on_restart("list", reason)
            ending = await (self._follow(watcher) if watcher is not None else self._watch())
        while True:
            self._on_restart("watch", ending.reason)
            if ending.relist:
                return ending
            await asyncio.sleep(self._reopen_delay(ending))
            ending = await self._watch()

    async def _discover(self) -> None:
        """Select a version of the resource that the server serves, if it is known to have several."""
        resource = self._selection.resource
        for version in resource.versions:
            try:
                served = await self._client.served(resource.group, version)
            except KubeError as error:
                self._log.debug("discovery failed", error=str(error), version=version)
                return
            if resource.plural in served:
                self._selection = replace(self._selection, resource=replace(resource, version=version))
                return

    def _reopen_delay(self, ending: Ending) -> float:
        """Return the seconds before the next watch: 0 if the last one worked or was the first to be closed at once."""
        if ending.back_off:
            return self._backoff.failed(at_least=ending.retry_after)
        self._quick_watches = self._quick_watches + 1 if ending is QUICK else 0
        return VERY_SHORT if self._quick_watches > 1 else 0.0

    async def _sync(self, stack: AsyncExitStack) -> StreamWatcher | None:
        """Replace the objects of the store; return the open watch if the list was a streaming one."""
        stream_error = None
        if self._client.watch_list_support.is_assumed():
            try:
                return await self._stream(stack)
            except KubeError as error:
                if not may_list_instead(error):
                    raise
                stream_error = error
            self._log.debug("falling back to a list", error=str(stream_error), status=stream_error.status)
            await stack.aclose()
        listed = await self._list()
        if stream_error is not None and is_unsupported(stream_error):
            self._client.watch_list_support.mark_unsupported()
        self._replace(listed.items, listed.resource_version, events=0)
        return None

    def _replace(self, items: list[Object], version: str, *, events: int) -> None:
        self._is_version_unavailable = False
        self._version = version
        self._store.replace(items, version)
        self._store.advance(version, events=events)

    async def _stream(self, stack: AsyncExitStack) -> StreamWatcher:
        """Request a streaming list that is not older than the last version, or else the latest state."""
        version = "" if self._is_version_unavailable else self._version
        try:
            return await self._stream_from(version, stack)
        except KubeError as error:
            if not version or not is_version_unavailable(error):
                raise
        self._is_version_unavailable = True
        await stack.aclose()
        return await self._stream_from("", stack)

    async def _stream_from(self, version: str, stack: AsyncExitStack) -> StreamWatcher:
        watcher = await self._open(version, stack, initial_events=True)
        initial = InitialEvents(self._selection, self._store.transform)
        reached = await initial.collect(watcher)
        self._replace(initial.objects(), reached, events=initial.received)
        return watcher

    async def _list(self) -> ObjectList:
        """List any cached state at first, later a state not older than the last version, else the latest state."""
        version = "" if self._is_version_unavailable else self._version or "0"
        limit = PAGE_SIZE if self._is_paged or version in _PAGED_VERSIONS else 0
        try:
            listed = await list_all_pages(self._page, resource_version=version, limit=limit)
        except KubeError as error:
            if version in _PAGED_VERSIONS or not is_version_unavailable(error):
                raise
            self._is_version_unavailable = True
            listed = await list_all_pages(self._page, resource_version="", limit=limit)
        self._is_paged = self._is_paged or (version == "0" and listed.paginated)
        return listed

    async def _page(self, options: ListOptions) -> ObjectList:
        return await self._client.list_page(self._selection, options, transform=self._store.transform)

    async def _open(self, version: str, stack: AsyncExitStack, *, initial_events: bool = False) -> StreamWatcher:
        watch = self._client.watch(
            self._selection,
            resource_version=version,
            timeout=self._random.randint(*WATCH_TIMEOUT),
            initial_events=initial_events,
        )
        return await stack.enter_async_context(watch)

    async def _watch(self) -> Ending:
        async with AsyncExitStack() as stack:
            try:
                watcher = await self._open(self._version, stack)
            except KubeError as error:
                return self._logged(after_connect(error), error)
            return await self._follow(watcher)

    async def _follow(self, watcher: StreamWatcher) -> Ending:
        # A watch from "" or "0" sends existing objects in any order: no watch can resume at their versions.
        self._is_ordered = self._version not in _PAGED_VERSIONS
        self.failing_since = None
        self.following_since = loop_time()
        try:
            async for events in watcher:
                error = self._apply(events)
                if error is not None:
                    return self._logged(after_error_event(error), error)
        except Undecodable as error:
            return self._logged(after_error_event(error), error)
        except Transient as error:
            # A broken stream counts as closed.
            self._log.debug("watch broke", error=str(error))
        finally:
            self.following_since = None
            self._backoff.succeeded(watcher.age)
        return after_close(age=watcher.age, events=watcher.received)

    def _apply(self, events: list[WatchEvent]) -> KubeError | None:
        """Apply events up to one that ends the watch; return its error."""
        try:
            for event in events:
                self._apply_one(event)
        except KubeError as error:
            return error
        finally:
            self._store.advance(self._version, events=len(events))
        return None

    def _apply_one(self, event: WatchEvent) -> None:
        version = apply_event(event, self._selection, self._store)
        if not version:
            return
        self._is_ordered = self._is_ordered or event.type != "ADDED"
        if self._is_ordered:
            self._version = version

    def _logged(self, ending: Ending, error: KubeError) -> Ending:
        if self.failing_since is None:
            self.failing_since = loop_time()
        log = self._log.warning if ending.is_warning else self._log.debug
        log("list or watch failed", error=str(error), reason=ending.reason, status=error.status)
        return ending
