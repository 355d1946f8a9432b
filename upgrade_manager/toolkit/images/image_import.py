"""Imports a release's images into the host's containerd, archive by archive.

The command prepare runs it; image_record.py records unfinished imports, kept_archives.py keeps RKE2's archives.
"""

from __future__ import annotations

import asyncio
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from upgrade_manager.toolkit.host.disk_space import require_space
from upgrade_manager.toolkit.host.host_paths import CONTAINERD
from upgrade_manager.toolkit.images.containerd import Images
from upgrade_manager.toolkit.images.image_archive import unpacked
from upgrade_manager.toolkit.images.image_record import ImageRecord
from upgrade_manager.toolkit.images.kept_archives import IMPORTED, kept_path, record_found, rke2_path
from upgrade_manager.toolkit.iso.downloads import Downloads
from upgrade_manager.toolkit.run.errors import BadArchive, OutOfSpace, ProgramFailed, StepFailed
from upgrade_manager.toolkit.run.periodic_report import reporting

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from upgrade_manager.toolkit.iso.downloads import Download
    from upgrade_manager.toolkit.iso.release_files import ImageArchive
    from upgrade_manager.toolkit.run.context import ToolkitContext

#: Bytes of a stream between two checks of the free space.
_CHECK_EVERY = 64 * 1024 * 1024
_MIB = 1024 * 1024


async def images_missing(context: ToolkitContext) -> str:
    """Return the number of images that containerd lacks, or the archive whose import did not end."""
    bundle = await context.release.bundle()
    archives = (*bundle.common, *bundle.rke2)
    interrupted = ImageRecord.load(context.tree).importing
    if interrupted in {archive.archive_path for archive in archives}:
        return f"the import of {interrupted} did not end"
    references = [one for archive in archives for one in await context.release.references(archive)]
    missing = await Images(context.programs).missing(references)
    return f"{len(missing)} images, such as {missing[0]}" if missing else ""


async def import_images(context: ToolkitContext) -> None:
    """Import each archive with an image that containerd lacks, and the archive whose import did not end.

    An archive is downloaded while the previous one is imported; at most two are on the disk.
    """
    required, previous = await _required(context), None
    try:
        async with asyncio.TaskGroup() as group:
            for one in required:
                await one.download()
                if previous is not None:
                    await previous
                previous = group.create_task(one.load())
    except BaseExceptionGroup as failures:
        # Either the download or the import failed, which cancelled the other task.
        error = failures.exceptions[0]
        if isinstance(error, OutOfSpace):
            for one in required:
                one.discard_download()
        raise error from None


async def _required(context: ToolkitContext) -> list[_Import]:
    bundle = await context.release.bundle()
    interrupted = ImageRecord.load(context.tree).importing
    archives = [(archive, False) for archive in bundle.common] + [(archive, True) for archive in bundle.rke2]
    lists = [await context.release.references(archive) for archive, _ in archives]
    missing = set(await Images(context.programs).missing([one for references in lists for one in references]))
    return [
        _Import(context, archive, is_kept=is_kept)
        for (archive, is_kept), references in zip(archives, lists, strict=True)
        if archive.archive_path == interrupted or not missing.isdisjoint(references)
    ]


async def _missing(context: ToolkitContext, archive: ImageArchive) -> list[str]:
    return await Images(context.programs).missing(await context.release.references(archive))


class _Import:
    """One archive: download, import, check."""

    def __init__(self, context: ToolkitContext, archive: ImageArchive, *, is_kept: bool) -> None:
        self._context = context
        self._archive = archive
        self._target = rke2_path(archive) if is_kept else kept_path(IMPORTED, archive.archive_path)
        self._is_kept = is_kept
        self._downloads = Downloads.of(context)
        #: None for an archive that was on the host.
        self._download: Download | None = None
        #: Bytes of the tar stream that ctr has.
        self._sent = 0

    async def download(self) -> None:
        """Download the archive, unless RKE2 has it."""
        source, target = self._archive.archive_path, self._target
        if self._is_kept:
            record_found(self._context, target)
            if await self._downloads.is_complete(source, target):
                return
        self._download = self._downloads.begin(source, target)
        await self._download.run()

    async def load(self) -> None:
        """Import the archive. Raises StepFailed unless containerd has all of its images afterwards."""
        path = self._context.tree.path(self._target) if self._download is None else self._download.path
        try:
            await self._load(path)
        except BadArchive:
            self._discard()
            raise
        if not self._is_kept:
            # A thread removes the file, because freeing gigabytes blocks for a while.
            await asyncio.to_thread(self._discard)
        elif self._download is not None:
            await self._download.keep()

    def discard_download(self) -> None:
        """Remove what was downloaded in this run; an archive that was on the host stays."""
        if self._download is not None:
            self._download.discard()

    def _discard(self) -> None:
        """Remove the archive from the host; the next run downloads it again."""
        self.discard_download()
        if self._download is None:
            self._context.tree.remove(self._target)

    async def _load(self, path: Path) -> None:
        """Import the archive, and check containerd's images; by the record, the next run repeats a killed import."""
        tree, name = self._context.tree, self._archive.file_name
        replace(ImageRecord.load(tree), importing=self._archive.archive_path).save(tree)
        async with reporting("importing", self._progress):
            try:
                await Images(self._context.programs).load(self._guarded(unpacked(path)))
            except ProgramFailed as error:
                raise ProgramFailed(f"{name}: {error}") from error
        if missing := await _missing(self._context, self._archive):
            raise StepFailed(
                f"{name} was imported, but containerd lacks {len(missing)} of its images, such as {missing[0]}"
            )
        replace(ImageRecord.load(tree), importing="").save(tree)

    def _guarded(self, pieces: Generator[bytes]) -> Generator[bytes]:
        """Raise OutOfSpace before containerd fills the disk, which VMs share with it."""
        directory, checked = self._context.tree.path(CONTAINERD), -_CHECK_EVERY
        with closing(pieces):
            for piece in pieces:
                if self._sent - checked >= _CHECK_EVERY:
                    checked = self._sent
                    require_space(directory, 0, purpose=f"the import of {self._archive.file_name}", place=CONTAINERD)
                self._sent += len(piece)
                yield piece

    def _progress(self) -> dict[str, str]:
        return {"archive": self._archive.file_name, "progress": f"{self._sent // _MIB} MiB unpacked"}
