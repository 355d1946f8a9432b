"""The release's root file system: downloaded to the host's persistent partition, and mounted there.

os_upgrade.py mounts it for elemental.py.
"""

from __future__ import annotations

import re
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import structlog

from upgrade_manager.toolkit.host.host_paths import ELEMENTAL, ELEMENTAL_STATE, OS_WORK
from upgrade_manager.toolkit.host.host_programs import Call, run_program
from upgrade_manager.toolkit.host.host_tree import HostTree
from upgrade_manager.toolkit.iso.downloads import Downloads
from upgrade_manager.toolkit.os.os_release import os_name, release_os
from upgrade_manager.toolkit.run.errors import BadArchive, ProgramFailed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from upgrade_manager.toolkit.run.context import ToolkitContext

SOURCE = "/rootfs.squashfs"
MOUNT_POINT = f"{OS_WORK}/rootfs"
#: The mount point of the new image, for a comparison with the root file system.
IMAGE_MOUNT_POINT = f"{OS_WORK}/image"
MOUNT_POINTS = (IMAGE_MOUNT_POINT, MOUNT_POINT)
_PREFIX = "rootfs-"
#: Seconds.
_TIMEOUT = 60.0

_log = structlog.get_logger(__name__)


def rootfs_path(os: str) -> str:
    """Return the path of the download of this operating system; each release has another path."""
    return f"{OS_WORK}/{_PREFIX}{re.sub(r'[^0-9A-Za-z.+-]+', '-', os)}.squashfs"


async def download_rootfs(context: ToolkitContext) -> None:
    """Download the release's root file system, after removing the downloads of other releases."""
    target = rootfs_path(await release_os(context))
    for path in downloads(context.tree):
        if not path.startswith(target):
            context.tree.remove(path)
    await Downloads.of(context).fetch(SOURCE, target)


def downloads(tree: HostTree) -> list[str]:
    """Return all complete and partial downloads."""
    return [f"{OS_WORK}/{name}" for name in tree.names(OS_WORK) if name.startswith(_PREFIX)]


@asynccontextmanager
async def mounted_rootfs(context: ToolkitContext) -> AsyncIterator[None]:
    """Mount the download at MOUNT_POINT while the block runs. Raises BadArchive and removes a wrong download."""
    os = await release_os(context)
    source = rootfs_path(os)
    async with AsyncExitStack() as stack:
        try:
            await stack.enter_async_context(mounted(context, "-t", "squashfs", "-o", "loop,ro", source, MOUNT_POINT))
        except ProgramFailed as error:
            context.tree.remove(source)
            raise BadArchive(f"{SOURCE} cannot be mounted, the next attempt downloads it again: {error}") from error
        # A separate tree: an absolute link in it does not lead to the host's files.
        found = os_name(HostTree(context.tree.path(MOUNT_POINT)))
        if found != os:
            context.tree.remove(source)
            raise BadArchive(f"{SOURCE} holds {found or 'no operating system'}, not the release's {os}")
        yield


@asynccontextmanager
async def mounted(context: ToolkitContext, *arguments: str) -> AsyncIterator[None]:
    """Mount by these arguments of `mount`, which end with the mount point, while the block runs. Raises StepFailed.

    The mount is visible only to this container, and ends with it.
    """
    target = arguments[-1]
    if target in MOUNT_POINTS:
        context.tree.make_directory(target)
    await run_program(context.programs, Call(argv=("mount", *arguments), timeout=_TIMEOUT))
    try:
        yield
    finally:
        await _unmount(context, target)


async def unmount_all(context: ToolkitContext) -> None:
    """Undo all mounts of a run that was killed; ignore errors of paths that are not mounted."""
    of_elemental = [path for path in (ELEMENTAL_STATE,) if context.tree.exists(path)]
    for path in (ELEMENTAL, *of_elemental, *MOUNT_POINTS):
        await _unmount(context, path)


async def _unmount(context: ToolkitContext, path: str) -> None:
    output = await context.programs.run(Call(argv=("umount", path), timeout=_TIMEOUT))
    if output.status != 0:
        _log.info("not unmounted", path=path, error=output.last_line)
