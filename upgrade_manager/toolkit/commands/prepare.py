"""`node prepare`: loads the release's images onto this node, so that its upgrade needs no registry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.pipeline.image_lists import parse_list
from upgrade_manager.toolkit.commands.version_guard import check
from upgrade_manager.toolkit.downloads import Downloads
from upgrade_manager.toolkit.host_paths import AGENT_IMAGES, RKE2_IMAGES, WORK
from upgrade_manager.toolkit.image_archive import unpacked
from upgrade_manager.toolkit.images import Images
from upgrade_manager.toolkit.repository_files import read_small
from upgrade_manager.toolkit.steps import Step

if TYPE_CHECKING:
    from upgrade_manager.toolkit.context import ToolkitContext
    from upgrade_manager.toolkit.release_files import ImageArchive

_ARCHIVES = f"{WORK}/images"


async def repository_is_away(context: ToolkitContext) -> str:
    """Return an empty text once the repository answers with a valid release; raises what a retry may mend."""
    await context.release.versions()
    await context.release.bundle()
    return ""


async def images_missing(context: ToolkitContext) -> str:
    """Return the number of images that containerd lacks."""
    bundle = await context.release.bundle()
    missing = [one for archive in (*bundle.common, *bundle.rke2) for one in await _missing(context, archive)]
    return f"{len(missing)} images, such as {missing[0]}" if missing else ""


async def import_images(context: ToolkitContext) -> None:
    """Import each archive with an image that containerd lacks."""
    bundle = await context.release.bundle()
    for folder, archives in ((_ARCHIVES, bundle.common), (RKE2_IMAGES, bundle.rke2)):
        for archive in archives:
            if await _missing(context, archive):
                await _import(context, archive, f"{folder}/{archive.file_name}")


async def archives_missing(context: ToolkitContext) -> str:
    """Return the kept archives that the host lacks."""
    return ", ".join(target for _, target in await _kept(context) if not context.tree.exists(target))


async def keep_archives(context: ToolkitContext) -> None:
    """Download the archives, and their lists, that RKE2 and rancher-system-agent read at their next start."""
    downloads = Downloads(context.files, context.tree)
    for source, target in await _kept(context):
        await downloads.fetch(source, target)


async def remove_common(context: ToolkitContext) -> None:
    """Remove the imported archives that nothing reads again."""
    context.tree.remove(_ARCHIVES)


async def _missing(context: ToolkitContext, archive: ImageArchive) -> list[str]:
    references = parse_list(await read_small(context.files, archive.list_path))
    return await Images(context.programs).missing(references)


async def _import(context: ToolkitContext, archive: ImageArchive, target: str) -> None:
    await Downloads(context.files, context.tree).fetch(archive.archive_path, target)
    await Images(context.programs).load(unpacked(context.tree.path(target)))


async def _kept(context: ToolkitContext) -> list[tuple[str, str]]:
    """Return paths on the ISO and on the host."""
    bundle = await context.release.bundle()
    return [
        (source, f"{folder}/{source.rpartition('/')[2]}")
        for folder, archives in ((RKE2_IMAGES, bundle.rke2), (AGENT_IMAGES, bundle.agent))
        for archive in archives
        for source in (archive.list_path, archive.archive_path)
    ]


STEPS = (
    Step(name="wait-for-repository", timeout=1800, missing=repository_is_away),
    Step(name="check-version", timeout=300, act=check),
    Step(name="import-images", timeout=4 * 3600, missing=images_missing, act=import_images),
    Step(name="keep-archives", timeout=2 * 3600, missing=archives_missing, act=keep_archives),
    Step(name="remove-imported-archives", timeout=300, act=remove_common),
)
