"""Keeps a sink equal to what the API server has: list, then watch, for ever, through whatever goes wrong.

The rules are those of client-go's reflector (tools/cache/reflector.go): which resourceVersion and page size a list
asks for, when list and watch are one stream (watchlist.py), what follows each way a watch can end (ending.py), and how
long to wait in between (backoff.py).
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn, Protocol

import structlog

from upgrade_manager.kube.decoder import Undecodable
from upgrade_manager.kube.errors import KubeError, Transient
from upgrade_manager.kube.pager import PAGE_SIZE, Listing, Page, PageQuery, Selection, read_pages
from upgrade_manager.kube.watch import EventReader, Keeper
from upgrade_manager.kube.watch_errors import (
    QUICK,
    VERY_SHORT,
    Ending,
    after_close,
    after_connect,
    after_error_event,
    after_list,
    calls_for_list,
    is_out_of_reach,
)
from upgrade_manager.kube.watch_list import InitialEvents, is_not_offered

if TYPE_CHECKING:
    from random import Random

    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.decoder import WatchEvent
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.observer import InformerObserver
    from upgrade_manager.kube.resources import Resource
    from upgrade_manager.kube.retry import Backoff
    from upgrade_manager.kube.watch import Watch

_log = structlog.get_logger(__name__)

#: Seconds, of which each watch asks the server for a random number.
WATCH_TIMEOUT = (300, 599)


class Sink(Keeper, Protocol):
    """What a reflector fills. Calls come one after the other; none awaits."""

    def prepare(self, obj: Object) -> Object:
        """What to keep of an object that `replace` will be given; may change it in place."""
        ...

    def replace(self, items: list[Object], version: str) -> None:
        """Exactly these prepared objects exist, at that resourceVersion."""
        ...

    def advance(self, version: str) -> None:
        """Everything up to that resourceVersion was put or dropped."""
        ...


class Reflector:
    """Fills a sink from one selection of one kind, for an informer."""

    def __init__(
        self,
        client: Client,
        resource: Resource,
        selection: Selection,
        *,
        sink: Sink,
        backoff: Backoff,
        random: Random,
        observer: InformerObserver,
    ) -> None:
        self._client = client
        self._resource = resource
        self._selection = selection
        self._sink = sink
        self._reader = EventReader(resource, selection)
        self._backoff = backoff
        self._random = random
        self._observer = observer
        self._log = _log.bind(resource=resource.name)
        #: Why the last list failed; empty where it did not.
        self.trouble = ""
        #: Where the next watch starts, and what the next list must not be older than; "" before the first list.
        self._version = ""
        #: Whether the server refused a list at that version; the next one asks for the newest state then.
        self._unavailable = False
        #: Whether the server pages even what it could answer from a cache, that is, has none.
        self._paged = False
        #: How many watches in a row were closed at once, though each brought something.
        self._quick = 0
        #: Whether the events of the open watch come in the order of their versions.
        self._ordered = True

    async def run(self) -> NoReturn:
        """Until cancelled. What a sink raises passes through: it is a fault in our own code."""
        reason = "start"
        while True:
            ending = await self._cycle(reason)
            reason = ending.reason
            await asyncio.sleep(self._backoff.failed(at_least=ending.patience))

    async def _cycle(self, reason: str) -> Ending:
        """One list and its watches; the ending that calls for the next list."""
        async with AsyncExitStack() as stack:
            try:
                watch = await self._synchronise(stack)
            except KubeError as error:
                self.trouble = str(error)
                return self._told(after_list(error), error)
            self.trouble = ""
            self._observer.relisted(self._resource.name, reason=reason)
            ending = await (self._follow(watch) if watch is not None else self._watch())
        while True:
            self._observer.watch_restarted(self._resource.name, reason=ending.reason)
            if ending.relist:
                return ending
            await asyncio.sleep(self._wait_to_reopen(ending))
            ending = await self._watch()

    def _wait_to_reopen(self, ending: Ending) -> float:
        """Seconds; none after a watch that worked, and none the first time that one was closed at once."""
        if ending.back_off:
            return self._backoff.failed(at_least=ending.patience)
        self._quick = self._quick + 1 if ending is QUICK else 0
        return VERY_SHORT if self._quick > 1 else 0.0

    async def _synchronise(self, stack: AsyncExitStack) -> Watch | None:
        """Have the sink replaced; the watch that goes on from there, where the list was one."""
        refusal = None
        if self._client.watch_lists.are_worth_asking_for():
            try:
                return await self._stream(stack)
            except KubeError as error:
                if not calls_for_list(error):
                    raise
                refusal = error
            self._log.debug("listing instead of streaming", error=str(refusal), status=refusal.status)
            await stack.aclose()
        listing = await self._list()
        if refusal is not None and is_not_offered(refusal):
            self._client.watch_lists.were_refused()
        self._replace(listing.items, listing.resource_version)
        return None

    def _replace(self, items: list[Object], version: str) -> None:
        self._unavailable = False
        self._sink.replace(items, version)
        self._version = version

    async def _stream(self, stack: AsyncExitStack) -> Watch:
        """A list and the watch after it as one: none older than what we know, the newest where that is refused."""
        version = "" if self._unavailable else self._version
        try:
            return await self._stream_from(version, stack)
        except KubeError as error:
            if not version or not is_out_of_reach(error):
                raise
        self._unavailable = True
        await stack.aclose()
        return await self._stream_from("", stack)

    async def _stream_from(self, version: str, stack: AsyncExitStack) -> Watch:
        watch = await self._open(version, stack, initial_events=True)
        found = InitialEvents(self._sink.prepare)
        reached = await found.collect(watch, self._reader, heard=self._heard)
        self._replace(found.objects(), reached)
        return watch

    async def _list(self) -> Listing:
        """First any cached state, later none older than what we know, the newest where the server refuses that."""
        version = "" if self._unavailable else self._version or "0"
        limit = PAGE_SIZE if self._paged or version in {"", "0"} else 0
        try:
            listing = await self._read(version, limit)
        except KubeError as error:
            if version in {"", "0"} or not is_out_of_reach(error):
                raise
            self._unavailable = True
            listing = await self._read("", limit)
        self._paged = self._paged or (version == "0" and listing.paginated)
        return listing

    async def _read(self, version: str, limit: int) -> Listing:
        return await read_pages(self._page, resource_version=version, limit=limit)

    async def _page(self, query: PageQuery) -> Page:
        page = await self._client.list_page(self._resource, self._selection, query)
        return replace(page, items=[self._sink.prepare(item) for item in page.items])

    async def _open(self, version: str, stack: AsyncExitStack, *, initial_events: bool = False) -> Watch:
        watch = self._client.watch(
            self._resource,
            self._selection,
            resource_version=version,
            timeout=self._random.randint(*WATCH_TIMEOUT),
            initial_events=initial_events,
        )
        return await stack.enter_async_context(watch)

    async def _watch(self) -> Ending:
        async with AsyncExitStack() as stack:
            try:
                watch = await self._open(self._version, stack)
            except KubeError as error:
                return self._told(after_connect(error), error)
            return await self._follow(watch)

    async def _follow(self, watch: Watch) -> Ending:
        # A watch that starts nowhere brings objects in any order: their versions say nothing until they are through.
        self._ordered = self._version not in {"", "0"}
        try:
            async for events in watch:
                self._heard(len(events))
                error = self._apply(events)
                if error is not None:
                    return self._told(after_error_event(error), error)
        except Undecodable as error:
            return self._told(after_error_event(error), error)
        except Transient as error:
            # A stream that breaks is one that ended.
            self._log.debug("watch broke", error=str(error))
        finally:
            self._backoff.worked(watch.lived)
        return after_close(lived=watch.lived, events=watch.received)

    def _heard(self, count: int) -> None:
        self._observer.events_received(self._resource.name, count=count)

    def _apply(self, events: list[WatchEvent]) -> KubeError | None:
        """Hand the events on, up to one that ends the watch; the error that it is."""
        try:
            for event in events:
                self._apply_one(event)
        except KubeError as error:
            return error
        finally:
            self._sink.advance(self._version)
        return None

    def _apply_one(self, event: WatchEvent) -> None:
        version = self._reader.hand_on(event, self._sink)
        if not version:
            return
        self._ordered = self._ordered or event.type != "ADDED"
        if self._ordered:
            self._version = version

    def _told(self, ending: Ending, error: KubeError) -> Ending:
        log = self._log.warning if ending.report else self._log.debug
        log("list or watch failed", error=str(error), reason=ending.reason, status=error.status)
        return ending
