"""Downloads large files of the ISO to the host: resumable, checked, and complete or absent."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, BinaryIO

import structlog

from upgrade_manager.kube.clock import loop_time
from upgrade_manager.kube.errors import Transient
from upgrade_manager.toolkit.errors import BadArchive, OutOfSpace
from upgrade_manager.toolkit.host_tree import PARTIAL, HostTree, complete

if TYPE_CHECKING:
    from pathlib import Path

    from upgrade_manager.toolkit.repository_files import FileBody, RepositoryFiles

#: Seconds before an interrupted download continues: at first, and at most.
_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 30.0
#: Seconds for which a download may make no progress at all before it fails: a repository that moves to another node.
STALL_TIMEOUT = 1800.0
#: Seconds between two reports.
_REPORT_EVERY = 10.0
#: Bytes that stay free on the file system.
RESERVE = 1024 * 1024 * 1024
#: Bytes written before the kernel is asked to write them to the disk, so that one large file does not fill its cache.
_SYNC_EVERY = 256 * 1024 * 1024
_MIB = 1024 * 1024


class Downloads:
    """Downloads files to the host."""

    def __init__(self, files: RepositoryFiles, tree: HostTree) -> None:
        self._files = files
        self._tree = tree
        self._log = structlog.get_logger(__name__)

    async def fetch(self, source: str, target: str) -> None:
        """Download the ISO's file `source` to `target` on the host, unless it is there.

        Continues a partial file of an earlier run. Raises OutOfSpace, BadArchive, NotFound, Terminal, and Transient
        after STALL_TIMEOUT without progress.
        """
        path = self._tree.path(target)
        if path.exists():
            return
        self._tree.make_directory(target.rpartition("/")[0])
        download = _Download(self._files, source, path.with_name(path.name + PARTIAL), self._log)
        await download.run()
        await asyncio.to_thread(complete, download.partial, path)


class _Download:
    """One download into a partial file, whose size is the progress."""

    def __init__(
        self, files: RepositoryFiles, source: str, partial: Path, log: structlog.typing.FilteringBoundLogger
    ) -> None:
        self._files = files
        self._source = source
        self.partial = partial
        self._log = log
        self._etag = ""
        #: The whole file's size, once the server said it.
        self._size: int | None = None
        self._done = False
        self._reported = 0.0

    async def run(self) -> None:
        pause, last = _FIRST_PAUSE, loop_time()
        while not self._done:
            before = self._have()
            try:
                await self._continue()
            except Transient as error:
                if self._have() > before:
                    pause, last = _FIRST_PAUSE, loop_time()
                elif loop_time() - last > STALL_TIMEOUT:
                    raise
                self._log.warning("download interrupted", file=self._source, bytes=self._have(), error=str(error))
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)

    def _have(self) -> int:
        return self.partial.stat().st_size if self.partial.exists() else 0

    async def _continue(self) -> None:
        """Append what is missing. Raises Transient if the connection breaks before the end."""
        # Without its etag a partial file of an earlier run may belong to another ISO.
        offset = self._have() if self._etag else 0
        async with self._files.open(self._source, offset=offset, etag=self._etag) as body:
            self._check_space(body)
            with self.partial.open("r+b" if body.offset else "wb") as file:
                file.seek(body.offset)
                file.truncate()
                await self._append(body, file)
                await asyncio.to_thread(os.fsync, file.fileno())
        self._etag = body.etag or self._etag
        self._judge(self._have(), body)

    async def _append(self, body: FileBody, file: BinaryIO) -> None:
        self._etag = body.etag
        self._size = body.size
        written = unsynced = 0
        async for piece in body.pieces:
            try:
                file.write(piece)
            except OSError as error:
                raise OutOfSpace(f"cannot write {self.partial.name}: {error.strerror}") from error
            written += len(piece)
            unsynced += len(piece)
            if unsynced >= _SYNC_EVERY:
                unsynced = 0
                await asyncio.to_thread(os.fdatasync, file.fileno())
            self._report(body.offset + written)
        file.flush()

    def _check_space(self, body: FileBody) -> None:
        if body.size is None:
            return
        status = os.statvfs(self.partial.parent)
        free, needed = status.f_bavail * status.f_frsize, body.size - body.offset + RESERVE
        if body.offset == 0:
            free += self._have()
        if free < needed:
            raise OutOfSpace(
                f"{self._source} needs {needed // _MIB} MiB on the host's {self.partial.parent}, which has "
                f"{free // _MIB} MiB free. Free space on the node"
            )

    def _judge(self, have: int, body: FileBody) -> None:
        if body.size is None or have == body.size:
            self._done = True
        elif have > body.size:
            self.partial.unlink()
            raise BadArchive(f"{self._source}: {have} bytes arrived instead of {body.size}")
        else:
            raise Transient(f"{self._source}: {have} of {body.size} bytes arrived")

    def _report(self, have: int) -> None:
        if loop_time() - self._reported < _REPORT_EVERY:
            return
        self._reported = loop_time()
        size = f" of {self._size // _MIB}" if self._size is not None else ""
        self._log.info("downloading", file=self._source, progress=f"{have // _MIB}{size} MiB")
