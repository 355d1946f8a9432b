"""The archives of images that `node prepare` left on the host, once RKE2 has imported them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.toolkit.host_paths import RKE2_IMAGES, WORK

if TYPE_CHECKING:
    from upgrade_manager.toolkit.context import ToolkitContext

_ARCHIVES = f"{WORK}/images"


async def archives_left(context: ToolkitContext) -> str:
    """Return the archives that nothing reads again."""
    return ", ".join(path for path in await _paths(context) if context.tree.exists(path))


async def remove_archives(context: ToolkitContext) -> None:
    """Remove them. Those of rancher-system-agent stay: it reads them whenever Rancher changes the node's plan."""
    for path in await _paths(context):
        context.tree.remove(path)


async def _paths(context: ToolkitContext) -> list[str]:
    """Return the folder of imported archives, and RKE2's archives and lists of this release."""
    bundle = await context.release.bundle()
    sources = [source for archive in bundle.rke2 for source in (archive.list_path, archive.archive_path)]
    return [_ARCHIVES, *(f"{RKE2_IMAGES}/{source.rpartition('/')[2]}" for source in sources)]
