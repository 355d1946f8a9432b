"""Feeds a stream to the standard input of a program."""

from __future__ import annotations

import asyncio
import fcntl
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

#: Bytes of the pipe; with the default of 64 KiB, both ends wake up too often for streams of many gigabytes.
_PIPE_SIZE = 1024 * 1024


class InputPipe:
    """A pipe to a program; the writing end does not block the event loop."""

    def __init__(self) -> None:
        self.read_end, self._write_end = os.pipe()
        os.set_blocking(self._write_end, False)
        try:
            fcntl.fcntl(self._write_end, fcntl.F_SETPIPE_SZ, _PIPE_SIZE)
        except PermissionError:
            # The user's pipes have used up the kernel's limit: it is slower, but works.
            return

    def started(self) -> None:
        """Close the reading end, which the program has now: after its end, writing fails."""
        os.close(self.read_end)
        self.read_end = -1

    async def feed(self, source: AsyncIterator[bytes]) -> None:
        """Write the whole source, then the end of the file. A source that raises leaves the pipe open.

        Returns early if the program ends before its input; the program's status says why.
        """
        try:
            async for piece in source:
                await self._write(piece)
                # Neither source nor pipe need to wait, but other tasks run.
                await asyncio.sleep(0)
        except BrokenPipeError:
            return
        os.close(self._write_end)
        self._write_end = -1

    def close(self) -> None:
        """Close what is open; the program must have ended, because it would take this for the end of the file."""
        for descriptor in (self.read_end, self._write_end):
            if descriptor >= 0:
                os.close(descriptor)
        self.read_end = self._write_end = -1

    async def _write(self, piece: bytes) -> None:
        rest = memoryview(piece)
        while rest:
            try:
                rest = rest[os.write(self._write_end, rest) :]
            except BlockingIOError:
                await self._writable()

    async def _writable(self) -> None:
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        loop.add_writer(self._write_end, ready.set)
        try:
            await ready.wait()
        finally:
            loop.remove_writer(self._write_end)
