"""Work that blocks, in threads which the event loop waits for.

Downloads, images/containerd.py, images/image_archive.py and host/program_input.py run in it.

A thread is never left behind: what it uses, such as a file, would be closed while it runs.
"""

from __future__ import annotations

import asyncio
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class BackgroundCalls:
    """Runs calls in threads, one at a time, while the caller works on.

    A context manager, whose end waits for the last call.
    """

    def __init__(self) -> None:
        self._last: asyncio.Future[None] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._last is not None:
            # Its error is ignored: the caller has been cancelled.
            await asyncio.gather(self._last, return_exceptions=True)

    async def start(self, call: Callable[..., None], *arguments: object) -> None:
        """Start a call once the previous one has ended. Raises what the previous one raised."""
        await self.finished()
        self._last = asyncio.get_running_loop().run_in_executor(None, partial(call, *arguments))

    async def finished(self) -> None:
        """Wait until the last call has ended. Raises what it raised."""
        if self._last is not None:
            await asyncio.shield(self._last)


async def consume(pieces: Iterator[bytes], use: Callable[[bytes, Event], None]) -> None:
    """Produce and use all pieces in one thread. Raises what either raises.

    When cancelled, it stops after the current piece, and `use` must return once its Event is set.
    """
    stopped = Event()

    def run() -> None:
        for piece in pieces:
            use(piece, stopped)
            if stopped.is_set():
                return

    thread = asyncio.get_running_loop().run_in_executor(None, run)
    try:
        await asyncio.shield(thread)
    finally:
        stopped.set()
        await asyncio.gather(thread, return_exceptions=True)


def discard(_: bytes, __: Event) -> None:
    """Use a piece for nothing: `consume` reads a stream to its end."""
