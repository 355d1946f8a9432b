"""Feeds a stream to the standard input of a program.

host_programs.py feeds programs by it; images/image_archive.py produces such a stream.
"""

from __future__ import annotations

import fcntl
import os
import select
from typing import TYPE_CHECKING

from upgrade_manager.toolkit.run.background_work import consume

if TYPE_CHECKING:
    from collections.abc import Iterator
    from threading import Event

#: Bytes of the pipe; with the default of 64 KiB, reader and writer wake up too often for streams of many gigabytes.
_PIPE_SIZE = 1024 * 1024
#: Milliseconds after which a thread that waits for the program finds that it must stop.
_STOP_AFTER = 100


class InputPipe:
    """A pipe to a program.

    A thread produces and writes the input. Handing each piece to the event loop, and waiting there for each time that
    the program reads, would cost more than unpacking it.
    """

    def __init__(self) -> None:
        self.read_end, self._write_end = os.pipe()
        os.set_blocking(self._write_end, False)
        self._room = select.poll()
        self._room.register(self._write_end, select.POLLOUT)
        try:
            fcntl.fcntl(self._write_end, fcntl.F_SETPIPE_SZ, _PIPE_SIZE)
        except PermissionError:
            # The user's pipes have used up the kernel's limit; the pipe works with its default size, only slower.
            return

    def started(self) -> None:
        """Close the reading end, which the program has inherited, so that writing fails after the program's end."""
        os.close(self.read_end)
        self.read_end = -1

    async def feed(self, source: Iterator[bytes]) -> None:
        """Write the whole source, then the end of the file. A source that raises leaves the pipe open.

        Returns early if the program ends before its input; the program's status says why.
        """
        try:
            await consume(source, self._write)
        except BrokenPipeError:
            return
        os.close(self._write_end)
        self._write_end = -1

    def close(self) -> None:
        """Close the open ends after the program has ended, which would read a closed pipe as the end of the file."""
        for descriptor in (self.read_end, self._write_end):
            if descriptor >= 0:
                os.close(descriptor)
        self.read_end = self._write_end = -1

    def _write(self, piece: bytes, stopped: Event) -> None:
        """Write the whole piece, unless stopped: another process may keep the pipe open after the program's end."""
        rest = memoryview(piece)
        while rest and not stopped.is_set():
            try:
                rest = rest[os.write(self._write_end, rest) :]
            except BlockingIOError:
                self._room.poll(_STOP_AFTER)
