"""Watches: the events since a revision, then new events, until the deadline or until the client disconnects.

A watch reads the collection's history from its position and has no queue, so a slow reader costs nothing and gets 410
when it has fallen behind.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hack.apiserver.status import StatusError, expired
from hack.apiserver.stored import Stored, encode, stamped

if TYPE_CHECKING:
    from hack.apiserver.history import Entry
    from hack.apiserver.presentation import View
    from hack.apiserver.selectors import Selector
    from hack.apiserver.storage import Collection, Storage

#: Seconds between bookmarks, and between the last one and the deadline.
BOOKMARK_SECONDS = 60.0
LAST_BOOKMARK_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchOptions:
    """The options of one watch."""

    namespace: str
    selector: Selector
    #: None to start with the present state; else the events after this revision.
    since: int | None
    bookmarks: bool
    #: Seconds until the server ends the stream.
    duration: float


class Watch:
    """One open watch; an error before the first event is its only content."""

    def __init__(self, storage: Storage, collection: Collection, view: View, options: WatchOptions) -> None:
        self._storage = storage
        self._collection = collection
        self._view = view
        self._options = options
        self._waker = asyncio.Event()
        #: True if no event was sent yet: Tables define their columns in the first one.
        self._first = True
        #: True if the ERROR event, always the last one, was sent.
        self._error_sent = False
        begin = asyncio.get_running_loop().time()
        self._deadline = begin + options.duration
        #: The times of the bookmarks, the next one last.
        self._marks = self._schedule(begin)
        #: The initial state, until it is sent.
        self._present: list[Stored] = []
        #: The position in the history; None when it was dropped.
        self._position: int | None
        if options.since is None:
            self._position = collection.history.end
            self._present = collection.states(options.namespace)
        else:
            self._position = collection.history.position(options.since)
        collection.wakers[self._waker] = None

    async def next(self) -> bytes | None:
        """Wait for the next line and return all lines that are available; None at the end of the stream."""
        present, self._present = self._present, []
        batch = b"".join(
            self._line("ADDED", state) for state in present if self._options.selector.matches(state.object)
        )
        while not batch:
            self._waker.clear()
            batch = self._batch() or self._bookmark()
            if not batch:
                if self._over():
                    return None
                await self._wait()
        return batch

    def close(self) -> None:
        """Unregister after the client has disconnected."""
        self._collection.wakers.pop(self._waker, None)

    def _over(self) -> bool:
        ended = self._position is None or self._collection.closed
        return ended or asyncio.get_running_loop().time() >= self._deadline

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout_at(min([self._deadline, *self._marks[-1:]])):
                await self._waker.wait()
        except TimeoutError:
            return

    def _schedule(self, begin: float) -> list[float]:
        if not self._options.bookmarks:
            return []
        count = int(self._options.duration // BOOKMARK_SECONDS)
        marks = {begin + BOOKMARK_SECONDS * step for step in range(1, count + 1)}
        return sorted({*marks, max(begin, self._deadline - LAST_BOOKMARK_SECONDS)}, reverse=True)

    def _bookmark(self) -> bytes:
        if self._over() or not self._marks or asyncio.get_running_loop().time() < self._marks[-1]:
            return b""
        self._marks.pop()
        return self._view.bookmark(self._storage.revision)

    def _batch(self) -> bytes:
        """Return the lines of new events, and advance the position."""
        position = self._position
        entries = self._collection.history.since(position) if position is not None else None
        if entries is None or position is None:
            self._position = None
            return b"" if self._error_sent else self._too_old()
        self._position = position + len(entries)
        return b"".join(self._seen(entry) for entry in entries)

    def _too_old(self) -> bytes:
        self._error_sent = True
        oldest = self._collection.history.compacted
        return error_line(expired(f"too old resource version: {self._options.since} ({oldest})"))

    def _seen(self, entry: Entry) -> bytes:
        """Return an event as this watch reports it: entering the selection is ADDED, leaving it DELETED."""
        namespace, selector = self._options.namespace, self._options.selector
        # A watch may start in the future: earlier events are skipped.
        early = entry.stored.revision <= (self._options.since or 0)
        if early or (namespace and entry.stored.namespace != namespace):
            return b""
        if not selector:
            return self._line(entry.kind, entry.stored)
        before = entry.previous is not None and selector.matches(entry.previous.object)
        after = entry.kind != "DELETED" and selector.matches(entry.stored.object)
        if after:
            return self._line("MODIFIED" if before else "ADDED", entry.stored)
        if not before or entry.previous is None:
            return b""
        if entry.kind == "DELETED":
            return self._line("DELETED", entry.stored)
        return self._line("DELETED", stamped(entry.previous.object, entry.stored.revision))

    def _line(self, kind: str, stored: Stored) -> bytes:
        line = self._view.event(kind, stored, first=self._first)
        self._first = False
        return line


def error_line(error: StatusError) -> bytes:
    """Return the last line of a watch that fails."""
    return encode({"type": "ERROR", "object": error.body()}) + b"\n"
