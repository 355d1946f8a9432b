"""Threads for blocking work, for which the event loop waits.

Downloads, images/containerd.py, images/image_archive.py and host/program_input.py use these threads.

No thread outlives its caller, which would close files and pipes that the thread still uses.
"""

from __future__ import annotations

import asyncio
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class BackgroundCalls:
    """Runs calls in threads, one at a time, while the caller continues.

    The object is a context manager, whose end waits for the last call.
    """

    def __init__(self) -> None:
        self._last: asyncio.Future[None] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._last is not None:
            # The call's error is ignored, because the caller has been cancelled.
            await asyncio.gather(self._last, return_exceptions=True)

    async def start(self, call: Callable[..., None], *arguments: object) -> None:
        """Start a call once the previous call has ended. Raises the error of the previous call."""
        await self.finished()
        self._last = asyncio.get_running_loop().run_in_executor(None, partial(call, *arguments))

    async def finished(self) -> None:
        """Wait until the last call has ended. Raises the error of the last call."""
        if self._last is not None:
            await asyncio.shield(self._last)


async def consume(pieces: Iterator[bytes], use: Callable[[bytes, Event], None]) -> None:
    """Produce and use all pieces in one thread. Raises the errors of `pieces` and `use`.

    After a cancellation, the thread stops after the current piece, and `use` must return once its Event is set.
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
    """Drop a piece, so that `consume` only reads a stream to its end."""
