"""Reads the events of a watch and applies them to a store (client-go's StreamWatcher)."""

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
    from upgrade_manager.kube.transport import Stream

#: Seconds without data after which the peer counts as dead. Bookmarks arrive about every 60 s; including the
#: reconnection it stays below 90.
IDLE_TIMEOUT = 80.0
#: Seconds after the requested timeout at which the client closes the watch itself.
GRACE_PERIOD = 30.0

_log = structlog.get_logger(__name__)


class StreamWatcher:
    """Iterates over the events of an open stream in batches, one for each read.

    The iteration may stop and resume. It ends when the server ends the watch; an incomplete last event is dropped,
    because the next watch sends it again. It raises Transient if the stream breaks, is silent or exceeds its deadline,
    and Undecodable for a line that is not an event, in both cases after the preceding events.
    """

    def __init__(self, stream: Stream, *, timeout: float) -> None:
        """`timeout` is the one in the request, in seconds."""
        self._chunks = aiter(stream.chunks())
        self._opened = loop_time()
        self._deadline = self._opened + timeout + GRACE_PERIOD
        self._lines = LineSplitter()
        #: Read, but not returned yet.
        self._events: list[WatchEvent] = []
        #: Raised after them.
        self._error: Undecodable | None = None
        self._has_ended = False
        #: Events read so far.
        self.received = 0

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> list[WatchEvent]:
        while not self._events:
            if self._error is not None:
                raise self._error
            if self._has_ended:
                raise StopAsyncIteration
            await self._read_batch()
        events, self._events = self._events, []
        return events

    def unread(self, events: list[WatchEvent]) -> None:
        """Return these events again, the last ones of the current batch."""
        self._events = events

    @property
    def age(self) -> float:
        """Seconds since the watch was opened."""
        return loop_time() - self._opened

    async def aclose(self) -> None:
        """Close the reader of the stream."""
        if isinstance(self._chunks, AsyncGenerator):
            await self._chunks.aclose()

    async def _read_batch(self) -> None:
        chunk = await self._read()
        if chunk is None:
            self._has_ended = True
            self._events, _ = decode_lines([self._lines.rest()])
        else:
            self._events, self._error = decode_lines(self._lines.feed(chunk))
        self.received += len(self._events)

    async def _read(self) -> bytes | None:
        try:
            async with asyncio.timeout(min(IDLE_TIMEOUT, self._deadline - loop_time())):
                return await anext(self._chunks, None)
        except TimeoutError as error:
            raise Transient("watch timed out without data", reason=TIMED_OUT) from error


class EventStore(Protocol):
    """The part of a store that events change."""

    def put(self, obj: Object) -> None:
        """Add or update an object."""
        ...

    def delete(self, obj: Object) -> None:
        """Remove an object; this is its last state."""
        ...


def apply_event(event: WatchEvent, selection: Selection, store: EventStore) -> str:
    """Apply an event to the store; return its resourceVersion, or "" for an unexpected object, which is skipped.

    Raises the error of an ERROR event, and Terminal for a whole object where only metadata was requested.
    """
    obj, resource = event.object, selection.resource
    if event.type == "ERROR":
        raise error_from_status(f"watch {resource.name}", obj)
    # In a metadata watch, a whole object passes here and fails below.
    is_expected = selection.metadata_only or obj.get("kind") == resource.kind
    version = resource_version(obj) if is_expected else ""
    if not version:
        _log.warning("unexpected object in a watch", resource=resource.name, type=event.type)
        return ""
    if selection.metadata_only:
        obj = resource.metadata_of(obj)
    if event.type in {"ADDED", "MODIFIED"}:
        store.put(obj)
    elif event.type == "DELETED":
        store.delete(obj)
    elif event.type != "BOOKMARK":
        _log.warning("unknown event type in a watch", resource=resource.name, type=event.type)
    return version
