"""One watch: a stream that is open, and the events that come out of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Protocol, Self

import structlog

from upgrade_manager.kube.clock import loop_time
from upgrade_manager.kube.decoder import LineSplitter, Undecodable, WatchEvent, decode_lines
from upgrade_manager.kube.errors import TIMED_OUT, Transient, error_from_status
from upgrade_manager.kube.objects import resource_version

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.pager import Selection
    from upgrade_manager.kube.resources import Resource
    from upgrade_manager.kube.transport import Stream


_log = structlog.get_logger(__name__)

#: Seconds of silence after which the peer counts as dead. Bookmarks come about every 60 s, and together with the
#: reconnection it stays below 90.
IDLE_TIMEOUT = 80.0
#: Seconds that a watch may outlive the end that was asked of the server.
GRACE = 30.0


def deadline_of(timeout: int) -> float:
    """The loop's time at which a watch that the server should end after `timeout` seconds is dropped from our side."""
    return loop_time() + timeout + GRACE


class Watch:
    """The events of an open stream in batches, each what one read brought: much is then paid by read, not by event.

    Iterating may be broken off and taken up again. It ends when the server ends the watch; an event that it cut off
    then is dropped, the next watch brings it. It raises Transient when the stream breaks, is silent for too long or
    outlives its deadline, and Undecodable when it sends what is no event; the events before that are handed out first.
    """

    def __init__(self, stream: Stream, *, idle_timeout: float, deadline: float) -> None:
        """`idle_timeout` in seconds without a byte, `deadline` in the loop's time."""
        self._chunks = aiter(stream.chunks())
        self._idle_timeout = idle_timeout
        self._deadline = deadline
        self._lines = LineSplitter()
        self._opened = loop_time()
        #: Read, but not handed out yet.
        self._events: list[WatchEvent] = []
        #: What to raise after them.
        self._error: Undecodable | None = None
        self._is_over = False
        #: How many events have been read.
        self.received = 0

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> list[WatchEvent]:
        while not self._events:
            if self._error is not None:
                raise self._error
            if self._is_over:
                raise StopAsyncIteration
            await self._fill()
        events, self._events = self._events, []
        return events

    def unread(self, events: list[WatchEvent]) -> None:
        """Hand these, the last ones of a batch, out once more."""
        self._events = events

    @property
    def lived(self) -> float:
        """Seconds since it was opened."""
        return loop_time() - self._opened

    async def aclose(self) -> None:
        """Let go of the stream's reader."""
        if isinstance(self._chunks, AsyncGenerator):
            await self._chunks.aclose()

    async def _fill(self) -> None:
        chunk = await self._read()
        if chunk is None:
            self._is_over = True
            self._events, _cut_off = decode_lines([self._lines.rest()])
        else:
            self._events, self._error = decode_lines(self._lines.feed(chunk))
        self.received += len(self._events)

    async def _read(self) -> bytes | None:
        try:
            async with asyncio.timeout(min(self._idle_timeout, self._deadline - loop_time())):
                return await anext(self._chunks, None)
        except TimeoutError as error:
            raise Transient("a watch went silent", reason=TIMED_OUT) from error


class Keeper(Protocol):
    """Whoever holds the objects that events are about."""

    def put(self, obj: Object) -> None:
        """The object was added or modified."""
        ...

    def drop(self, obj: Object) -> None:
        """The object was deleted; this is its last state."""
        ...


class EventReader:
    """Hands the objects of events on to a keeper. Events that make no sense are logged and skipped."""

    def __init__(self, resource: Resource, selection: Selection) -> None:
        self._resource = resource
        self._selection = selection
        self._log = _log.bind(resource=resource.name)
        #: How errors name what is read.
        self.about = f"watch {resource.name}"

    def hand_on(self, event: WatchEvent, keeper: Keeper) -> str:
        """The resourceVersion that the event reaches; nothing for one that was skipped.

        Raises the error that an ERROR event tells of, and Terminal for more than the metadata that was asked for.
        """
        obj = event.object
        if event.type == "ERROR":
            raise error_from_status(self.about, obj)
        version = resource_version(obj) if self._is_expected(obj) else ""
        if not version:
            self._log.warning("unexpected object in a watch", type=event.type)
            return ""
        if self._selection.metadata_only:
            obj = self._resource.metadata_of(obj)
        if event.type in {"ADDED", "MODIFIED"}:
            keeper.put(obj)
        elif event.type == "DELETED":
            keeper.drop(obj)
        elif event.type != "BOOKMARK":
            self._log.warning("unknown type of event in a watch", type=event.type)
        return version

    def _is_expected(self, obj: Object) -> bool:
        # Whole objects in a metadata watch are let through here, to be refused aloud.
        return self._selection.metadata_only or obj.get("kind") == self._resource.kind
