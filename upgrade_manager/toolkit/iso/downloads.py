"""Downloads large files of the ISO to the host; a download is resumable, and a file is complete or absent.

Archives of images, Rancher's chart and the root file system (os/os_rootfs.py) are downloaded by this module;
partial_file.py is the file during the download.

An interrupted download continues if ETag and size are unchanged. The checksum (checksums) proves that a complete file
is the ISO's file; without a checksum, image_archive verifies the checksums in the zstd frames of archives.
"""

from __future__ import annotations

import asyncio
import errno
import os
from typing import TYPE_CHECKING, BinaryIO, Self

import structlog

from upgrade_manager.kube.clock import loop_time
from upgrade_manager.kube.errors import Transient
from upgrade_manager.kube.retry import Backoff
from upgrade_manager.toolkit.host.disk_space import require_space
from upgrade_manager.toolkit.iso.partial_file import Identity, PartialFile, write_all
from upgrade_manager.toolkit.iso.repository_files import FileChanged
from upgrade_manager.toolkit.run.background_work import BackgroundCalls
from upgrade_manager.toolkit.run.errors import BadArchive, OutOfSpace, StepFailed, StepTimedOut, WrongChecksum
from upgrade_manager.toolkit.run.periodic_report import reporting

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    from upgrade_manager.toolkit.host.host_tree import HostTree
    from upgrade_manager.toolkit.iso.checksums import Checksums
    from upgrade_manager.toolkit.iso.repository_files import FileBody, RepositoryFiles
    from upgrade_manager.toolkit.run.context import ToolkitContext

#: Seconds without any progress after which a download fails; the repository's Pod may move to another node meanwhile.
STALL_TIMEOUT = 1800.0
#: The least bytes that a thread writes at once, because handing over each piece would cost more than writing it.
_WRITE = 1024 * 1024
#: Bytes between two calls that flush the kernel's cache to the disk and check the free space.
#: The unwritten bytes are at most twice this number.
_SYNC_EVERY = 256 * 1024 * 1024
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_MIB = 1024 * 1024

_log = structlog.get_logger(__name__)


class Downloads:
    """Downloads files to the host."""

    def __init__(self, files: RepositoryFiles, tree: HostTree, *, checksums: Checksums, random: Random) -> None:
        self._files = files
        self._tree = tree
        self._checksums = checksums
        self._random = random

    @classmethod
    def of(cls, context: ToolkitContext) -> Self:
        """Return the downloads of a command to its host."""
        return cls(context.files, context.tree, checksums=context.checksums, random=context.random)

    async def fetch(self, source: str, target: str) -> None:
        """Download the ISO's file `source` to `target` on the host, unless the target is complete.

        Raises the errors of Download.run.
        """
        if await self.is_complete(source, target):
            return
        download = self.begin(source, target)
        await download.run()
        await download.keep()

    def begin(self, source: str, target: str) -> Download:
        """Return a download that has not started; it continues the partial file of an earlier run."""
        folder = target.rpartition("/")[0]
        self._tree.make_directory(folder)
        partial = PartialFile(self._tree.path(target))
        return Download(self._files, source, partial, place=folder, checksums=self._checksums, random=self._random)

    async def is_complete(self, source: str, target: str) -> bool:
        """Return True if the target has the ISO's size and checksum. Raises KubeError and BadArchive."""
        path = self._tree.path(target)
        if not path.is_file():
            return False
        async with self._files.open(source) as body:
            if body.size not in {None, path.stat().st_size}:
                return False
        try:
            await self._checksums.verify(source, path)
        except WrongChecksum as error:
            _log.warning("file is downloaded again", file=target, error=str(error))
            return False
        return True


class Download:
    """One download into a partial file.

    The download continues the partial file of an earlier run if that file comes from this ISO. On a full disk the
    partial file is removed, because the kubelet would evict Pods and VMs.
    """

    def __init__(
        self,
        files: RepositoryFiles,
        source: str,
        partial: PartialFile,
        *,
        place: str,
        checksums: Checksums,
        random: Random,
    ) -> None:
        self._files = files
        self._source = source
        self._partial = partial
        self._place = place
        self._checksums = checksums
        self._random = random
        self._done = False
        #: The most bytes that the file has had; a file that starts over makes no progress below this number.
        self._most = 0

    @property
    def path(self) -> Path:
        """The partial file, which `run` completes."""
        return self._partial.path

    async def run(self) -> None:
        """Download the missing bytes; discard a file with a wrong checksum, and download it from its start once more.

        Raises NotFound, Terminal, and StepFailed: OutOfSpace, BadArchive, StepTimedOut after STALL_TIMEOUT without
        progress.
        """
        self._checksums.expected(self._source)
        async with reporting("downloading", self._progress):
            try:
                try:
                    await self._retry()
                    await self._verify()
                except WrongChecksum as error:
                    _log.warning("download starts over", error=str(error))
                    self._done = False
                    await self._retry()
                    await self._verify()
            except OSError as error:
                raise self._storage_error(error) from error
            except OutOfSpace:
                self._partial.discard()
                raise

    async def keep(self) -> None:
        """Give the whole file its name, durably."""
        await asyncio.to_thread(self._partial.complete)

    def discard(self) -> None:
        """Remove the file, which is useless or no longer needed."""
        self._partial.discard()

    async def _verify(self) -> None:
        """Discard a file with a wrong checksum. Raises WrongChecksum."""
        try:
            await self._checksums.verify(self._source, self._partial.path)
        except WrongChecksum:
            self._partial.discard()
            raise

    async def _retry(self) -> None:
        # All nodes of a cluster lose the repository at the same time, so that their retries need jitter.
        backoff, last = Backoff(random=self._random), loop_time()
        self._most = self._partial.length()
        while not self._done:
            try:
                await self._continue()
            except Transient as error:
                if isinstance(error, FileChanged):
                    self._partial.discard()
                if self._partial.length() > self._most:
                    self._most, last = self._partial.length(), loop_time()
                    backoff = Backoff(random=self._random)
                elif loop_time() - last > STALL_TIMEOUT:
                    raise StepTimedOut(f"no progress for {STALL_TIMEOUT / 60:g} min: {error}") from error
                pause = backoff.failed()
                _log.warning("download interrupted", **self._progress(), error=str(error), retry_after=round(pause, 1))
                await asyncio.sleep(pause)

    async def _continue(self) -> None:
        """Append the missing bytes. Raises Transient if the connection breaks before the end, or the file changed."""
        known = self._partial.identity()
        offset = self._offset(known)
        async with self._files.open(self._source, offset=offset, etag=known.etag) as body:
            found = Identity(etag=body.etag, size=body.size)
            if body.offset:
                self._require_same(known, found, continues=body.offset == offset)
            else:
                self._partial.begin(found)
            needed = 0 if body.size is None else body.size - body.offset
            require_space(self._partial.path, needed, purpose=self._source, place=self._place)
            with self._partial.open_at(body.offset) as file:
                await self._append(body, file)
        self._judge(body.size)

    def _offset(self, known: Identity) -> int:
        """Return the offset to continue at; of a complete file the last byte is requested, to compare its identity."""
        if not known.etag:
            return 0
        length = self._partial.length()
        return length if known.size is None else max(0, min(length, known.size - 1))

    def _require_same(self, known: Identity, found: Identity, *, continues: bool) -> None:
        """Raise FileChanged unless the body continues the file that was begun; some servers ignore If-Range."""
        same_size = found.size == known.size or None in {found.size, known.size}
        if not continues or not same_size or found.etag not in {known.etag, ""}:
            raise FileChanged(f"{self._source} has changed on the server")

    async def _append(self, body: FileBody, file: BinaryIO) -> None:
        """Write and flush arrived pieces while more pieces arrive; an error is raised after all pieces are written."""
        arrived, size, unsynced = list[bytes](), 0, 0
        # Threads write, because the kernel blocks writers while its cache of unwritten data is full.
        async with BackgroundCalls() as writing, BackgroundCalls() as syncing:
            try:
                async for piece in body.pieces:
                    arrived.append(piece)
                    size += len(piece)
                    if size < _WRITE:
                        continue
                    await writing.start(write_all, file, arrived)
                    unsynced += size
                    arrived, size = [], 0
                    if unsynced >= _SYNC_EVERY:
                        unsynced = 0
                        await syncing.start(os.fdatasync, file.fileno())
                        require_space(self._partial.path, 0, purpose=self._source, place=self._place)
            finally:
                await writing.start(write_all, file, arrived)
            await writing.finished()
            await syncing.finished()

    def _judge(self, size: int | None) -> None:
        have = self._partial.length()
        if size is None or have == size:
            self._done = True
        elif have > size:
            self._partial.discard()
            raise BadArchive(f"{self._source}: {have} bytes arrived instead of {size}")
        else:
            raise Transient(f"{self._source}: {have} of {size} bytes arrived")

    def _storage_error(self, error: OSError) -> StepFailed:
        text = f"{self._source} cannot be written to {self._place} on the host: {error.strerror or error}"
        if error.errno not in _FULL:
            return StepFailed(text)
        self._partial.discard()
        return OutOfSpace(f"{text}. Free space on the node")

    def _progress(self) -> dict[str, str]:
        size = self._partial.identity().size
        of = "" if size is None else f" of {size // _MIB}"
        return {"file": self._source, "progress": f"{self._partial.length() // _MIB}{of} MiB"}
