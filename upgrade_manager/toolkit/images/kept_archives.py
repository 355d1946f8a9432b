"""The archives of images that RKE2 and rancher-system-agent read at their next start, and the archives' lists."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from upgrade_manager.toolkit.host.host_paths import AGENT_IMAGES, RKE2_IMAGES, WORK
from upgrade_manager.toolkit.images.image_archive import verify
from upgrade_manager.toolkit.images.image_record import ImageRecord
from upgrade_manager.toolkit.iso.downloads import Downloads
from upgrade_manager.toolkit.run.errors import BadArchive

if TYPE_CHECKING:
    from upgrade_manager.toolkit.iso.downloads import Download
    from upgrade_manager.toolkit.iso.release_files import ImageArchive
    from upgrade_manager.toolkit.run.context import ToolkitContext

#: The folder of archives that are imported and not kept.
IMPORTED = f"{WORK}/images"


async def archives_missing(context: ToolkitContext) -> str:
    """Return the kept archives that the host lacks."""
    downloads = Downloads.of(context)
    wanted = await _wanted(context)
    return ", ".join([target for source, target in wanted if not await downloads.is_complete(source, target)])


async def keep_archives(context: ToolkitContext) -> None:
    """Download the archives, and then their lists.

    RKE2 pulls the images of a list that containerd lacks, so a list without its archive could delay its start; an
    archive without its list is imported all the same.
    """
    downloads = Downloads.of(context)
    for source, target in await _wanted(context):
        record_found(context, target)
        if source.endswith(".txt"):
            await downloads.fetch(source, target)
        elif not await downloads.is_complete(source, target):
            await _keep_archive(downloads.begin(source, target))


async def _keep_archive(download: Download) -> None:
    """Download an archive, and verify it before RKE2 sees it."""
    await download.run()
    try:
        await verify(download.path)
    except BadArchive:
        download.discard()
        raise
    await download.keep()


def record_found(context: ToolkitContext, target: str) -> None:
    """Record once if the file existed before the upgrade."""
    record = ImageRecord.load(context.tree)
    if target not in record.found:
        found = {**record.found, target: context.tree.exists(target)}
        replace(record, found=found).save(context.tree)


async def archives_left(context: ToolkitContext) -> str:
    """Return the archives that nothing reads again once RKE2 has imported them."""
    return ", ".join(path for path in await _removable(context) if context.tree.exists(path))


async def remove_archives(context: ToolkitContext) -> None:
    """Remove the archives of RKE2. The agent's archives stay, because each change of the node's plan reads them."""
    for path in await _removable(context):
        context.tree.remove(path)


async def _wanted(context: ToolkitContext) -> list[tuple[str, str]]:
    """Return paths on the ISO and on the host, each archive before its list."""
    bundle = await context.release.bundle()
    return [
        (source, kept_path(folder, source))
        for folder, archives in ((RKE2_IMAGES, bundle.rke2), (AGENT_IMAGES, bundle.agent))
        for archive in archives
        for source in (archive.archive_path, archive.list_path)
    ]


async def _removable(context: ToolkitContext) -> list[str]:
    """Return the folder of imported archives, and RKE2's files of this release that the upgrade put there."""
    found = ImageRecord.load(context.tree).found
    kept = [target for _, target in await _wanted(context) if target.startswith(f"{RKE2_IMAGES}/")]
    return [IMPORTED, *(target for target in kept if not found.get(target))]


def kept_path(folder: str, source: str) -> str:
    """Return the host's path of a file of the ISO that is kept."""
    return f"{folder}/{source.rpartition('/')[2]}"


def rke2_path(archive: ImageArchive) -> str:
    """Return the host's path at which RKE2 reads the archive."""
    return kept_path(RKE2_IMAGES, archive.archive_path)
