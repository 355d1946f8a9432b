"""Keeps a sink equal to what the API server has: list, then watch, for ever, through whatever goes wrong.

The rules are those of client-go's reflector (tools/cache/reflector.go): which resourceVersion and page size a list
asks for, what follows each way a watch can end (ending.py), and how long to wait in between (backoff.py).
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, aclosing
from functools import partial
from typing import TYPE_CHECKING, NoReturn, Protocol

import structlog

from upgrade_manager.kube.client import named_metadata
from upgrade_manager.kube.decoder import Undecodable
from upgrade_manager.kube.ending import (
    QUICK,
    VERY_SHORT,
    Ending,
    after_close,
    after_connect,
    after_error_event,
    after_list,
)
from upgrade_manager.kube.errors import Gone, KubeError, Terminal, Transient
from upgrade_manager.kube.listing import PAGE_SIZE, Listing, Selection, read_pages
from upgrade_manager.kube.objects import metadata
from upgrade_manager.kube.status import error_from_status, is_too_large

if TYPE_CHECKING:
    from random import Random

    from upgrade_manager.kube.backoff import Backoff
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.decoder import WatchEvent
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.observer import InformerObserver
    from upgrade_manager.kube.resource import Resource
    from upgrade_manager.kube.watch import Watch

_log = structlog.get_logger(__name__)

#: Seconds, of which each watch asks the server for a random number.
WATCH_TIMEOUT = (300, 599)


class Sink(Protocol):
    """What a reflector fills. Calls come one after the other; none awaits."""

    def replace(self, items: list[Object], version: str) -> None:
        """Exactly these objects exist, at that resourceVersion."""
        ...

    def put(self, obj: Object) -> None:
        """The object was added or modified."""
        ...

    def drop(self, obj: Object) -> None:
        """The object was deleted; this is its last state."""
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
        try:
            listing = await self._list()
        except KubeError as error:
            self.trouble = str(error)
            return self._told(after_list(error), error)
        self.trouble = ""
        self._sink.replace(listing.items, listing.resource_version)
        self._version = listing.resource_version
        self._observer.relisted(self._resource.name, reason=reason)
        while True:
            ending = await self._watch()
            self._observer.watch_restarted(self._resource.name, reason=ending.reason)
            if ending.relist:
                return ending
            await asyncio.sleep(self._wait_to_reopen(ending))

    def _wait_to_reopen(self, ending: Ending) -> float:
        """Seconds; none after a watch that worked, and none the first time that one was closed at once."""
        if ending.back_off:
            return self._backoff.failed(at_least=ending.patience)
        self._quick = self._quick + 1 if ending is QUICK else 0
        return VERY_SHORT if self._quick > 1 else 0.0

    async def _list(self) -> Listing:
        """First any cached state, later none older than what we know, the newest where the server refuses that."""
        version = "" if self._unavailable else self._version or "0"
        limit = PAGE_SIZE if self._paged or version in {"", "0"} else 0
        try:
            listing = await self._read(version, limit)
        except KubeError as error:
            if version in {"", "0"} or not _is_out_of_reach(error):
                raise
            self._unavailable = True
            listing = await self._read("", limit)
        self._unavailable = False
        self._paged = self._paged or (version == "0" and listing.paginated)
        return listing

    async def _read(self, version: str, limit: int) -> Listing:
        fetch = partial(self._client.list_page, self._resource, self._selection)
        return await read_pages(fetch, resource_version=version, limit=limit)

    async def _watch(self) -> Ending:
        async with AsyncExitStack() as stack:
            opening = self._client.watch(
                self._resource,
                self._selection,
                resource_version=self._version,
                timeout=self._random.randint(*WATCH_TIMEOUT),
            )
            try:
                watch = await stack.enter_async_context(opening)
            except KubeError as error:
                return self._told(after_connect(error), error)
            return await self._follow(watch)

    async def _follow(self, watch: Watch) -> Ending:
        opened, count = _time(), 0
        # A watch that starts nowhere brings objects in any order: their versions say nothing until they are through.
        self._ordered = self._version not in {"", "0"}
        try:
            async with aclosing(watch.batches()) as batches:
                async for events in batches:
                    count += len(events)
                    self._observer.events_received(self._resource.name, count=len(events))
                    error = self._apply(events)
                    if error is not None:
                        return self._told(after_error_event(error), error)
        except Undecodable as error:
            return self._told(after_error_event(error), error)
        except Transient as error:
            # A stream that breaks is one that ended.
            self._log.debug("watch broke", error=str(error))
        finally:
            self._backoff.worked(_time() - opened)
        return after_close(lived=_time() - opened, events=count)

    def _apply(self, events: list[WatchEvent]) -> KubeError | None:
        """Hand the events on, up to one that ends the watch; the error that it is."""
        try:
            for event in events:
                if event.type == "ERROR":
                    return error_from_status(f"watch {self._resource.name}", event.object)
                self._apply_one(event)
        except Terminal as error:
            return error
        finally:
            self._sink.advance(self._version)
        return None

    def _apply_one(self, event: WatchEvent) -> None:
        obj = event.object
        version = metadata(obj).get("resourceVersion") if self._is_expected(obj) else None
        if not version:
            self._log.warning("unexpected object in a watch", type=event.type)
            return
        if self._selection.metadata_only:
            obj = named_metadata(self._resource, obj)
        if event.type in {"ADDED", "MODIFIED"}:
            self._sink.put(obj)
        elif event.type == "DELETED":
            self._sink.drop(obj)
        elif event.type != "BOOKMARK":
            self._log.warning("unknown type of event in a watch", type=event.type)
        self._ordered = self._ordered or event.type != "ADDED"
        if self._ordered:
            self._version = version

    def _is_expected(self, obj: Object) -> bool:
        # Whole objects in a metadata watch are let through here, to be refused aloud.
        return self._selection.metadata_only or obj.get("kind") == self._resource.kind

    def _told(self, ending: Ending, error: KubeError) -> Ending:
        log = self._log.warning if ending.report else self._log.debug
        log("list or watch failed", error=str(error), reason=ending.reason, status=error.status)
        return ending


def _is_out_of_reach(error: KubeError) -> bool:
    """Whether the server cannot answer at that resourceVersion, but may at its newest.

    Servers too old to name the cause answer to a version that they have not reached with a Timeout without causes.
    """
    if isinstance(error, Gone) or is_too_large(error):
        return True
    return error.reason == "Timeout" and not error.details.get("causes")


def _time() -> float:
    return asyncio.get_running_loop().time()
