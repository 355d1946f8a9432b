"""One watch: a stream that is open, and the events that come out of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from upgrade_manager.kube.decoder import LineSplitter, WatchEvent, decode_lines
from upgrade_manager.kube.errors import TIMED_OUT, Transient

if TYPE_CHECKING:
    from upgrade_manager.kube.transport import Stream


#: Seconds of silence after which the peer counts as dead. Bookmarks come about every 60 s, and together with the
#: reconnection it stays below 90.
IDLE_TIMEOUT = 80.0
#: Seconds that a watch may outlive the end that was asked of the server.
GRACE = 30.0


def deadline_of(timeout: int) -> float:
    """The loop's time at which a watch that the server should end after `timeout` seconds is dropped from our side."""
    return asyncio.get_running_loop().time() + timeout + GRACE


class Watch:
    """The events of an open stream in batches, each what one read brought: much is then paid by read, not by event."""

    def __init__(self, stream: Stream, *, idle_timeout: float, deadline: float) -> None:
        """`idle_timeout` in seconds without a byte, `deadline` in the loop's time."""
        self._chunks = aiter(stream.chunks())
        self._idle_timeout = idle_timeout
        self._deadline = deadline
        self._lines = LineSplitter()

    async def batches(self) -> AsyncGenerator[list[WatchEvent], None]:
        """Ends when the server ends the watch; an event that it cut off then is dropped, the next watch brings it.

        Raises Transient when the stream breaks, is silent for too long or outlives its deadline, and Undecodable when
        it sends what is no event; the events before that have been handed out by then.
        """
        while (chunk := await self._read()) is not None:
            events, error = decode_lines(self._lines.feed(chunk))
            if events:
                yield events
            if error is not None:
                raise error
        events, _cut_off = decode_lines([self._lines.rest()])
        if events:
            yield events

    async def aclose(self) -> None:
        """Let go of the stream's reader."""
        if isinstance(self._chunks, AsyncGenerator):
            await self._chunks.aclose()

    async def _read(self) -> bytes | None:
        now = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(min(self._idle_timeout, self._deadline - now)):
                return await anext(self._chunks, None)
        except TimeoutError as error:
            raise Transient("a watch went silent", reason=TIMED_OUT) from error
