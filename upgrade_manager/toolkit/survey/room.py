"""The space that the new operating system needs on the node, before it is downloaded.

The exact size is known once post-drain mounts the download (os/os_upgrade.py). The files of the new system are counted
as those of the running one, or as their compressed size in the repository if that is more: what is refused here would
be refused there, too.

checks.py lists the check.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from upgrade_manager.kube.errors import KubeError
from upgrade_manager.toolkit.host.disk_space import RESERVE, free_bytes
from upgrade_manager.toolkit.host.host_paths import ACTIVE_IMAGE, OS_WORK, PASSIVE_IMAGE, STATE_PARTITION
from upgrade_manager.toolkit.os.os_images import disk_usage, free_space, interrupted, room_needed, used_space
from upgrade_manager.toolkit.os.os_release import os_name, release_os
from upgrade_manager.toolkit.os.os_rootfs import SOURCE, rootfs_path
from upgrade_manager.toolkit.os.running_image import running_image
from upgrade_manager.toolkit.run.errors import StepFailed

if TYPE_CHECKING:
    from upgrade_manager.toolkit.run.context import ToolkitContext

#: Seconds for an answer of the repository, which may not be reachable yet.
_TIMEOUT = 5.0
_MIB = 1024 * 1024


async def state_partition(context: ToolkitContext) -> list[str]:
    """Find a state partition that has no room for the new image."""
    if await is_upgraded(context):
        return []
    running, download = await used_space(context, "/"), await _download_size(context)
    needed = room_needed(max(running, download // _MIB))
    free = await free_space(context) + await _freed(context, running=running)
    if free >= needed:
        return []
    text = f"The new operating system needs at least {needed} MiB on the state partition {STATE_PARTITION}, which has "
    # An image that runs must stay.
    other = "" if _runs_fallback(context) else f", or remove {PASSIVE_IMAGE} (the fallback for boot failures)"
    return [f"{text}{free} MiB for it. Enlarge the partition{other}."]


async def persistent_partition(context: ToolkitContext) -> list[str]:
    """Find a persistent partition that has no room for the download."""
    if await is_upgraded(context):
        return []
    needed, free = RESERVE + await _missing_download(context), free_bytes(context.tree.path(OS_WORK))
    if free >= needed:
        return []
    text = f"The upgrade needs {-(-needed // _MIB)} MiB in /usr/local, which has {free // _MIB} MiB free."
    return [f"{text} Free space there."]


async def _freed(context: ToolkitContext, *, running: int) -> int:
    """Return the MiB that post-drain frees before it measures the space; `running` is the running system's size."""
    freed = 0
    for path in interrupted(context.tree):
        freed += await disk_usage(context, path)
    if _runs_fallback(context):
        # The fallback that runs replaces the image that did not boot.
        return freed + (await disk_usage(context, ACTIVE_IMAGE) if context.tree.is_there(ACTIVE_IMAGE) else 0)
    if context.tree.is_there(PASSIVE_IMAGE):
        # Its empty blocks.
        freed += max(0, await disk_usage(context, PASSIVE_IMAGE) - running)
    return freed


def _runs_fallback(context: ToolkitContext) -> bool:
    try:
        return running_image(context.tree) == PASSIVE_IMAGE
    except StepFailed:
        return False


async def is_upgraded(context: ToolkitContext) -> bool:
    """Return True if the node is known to run the release's operating system, so that nothing is installed on it."""
    try:
        async with asyncio.timeout(_TIMEOUT):
            return os_name(context.tree) == await release_os(context)
    except (KubeError, StepFailed, TimeoutError):
        return False


async def _missing_download(context: ToolkitContext) -> int:
    """Return the bytes of the download that the node lacks; 0 if the repository does not answer."""
    size = await _download_size(context)
    if not size:
        return 0
    target = context.tree.path(rootfs_path(await release_os(context)))
    found = [path.stat().st_size for path in target.parent.glob(f"{target.name}*")]
    return max(0, size - max(found, default=0))


async def _download_size(context: ToolkitContext) -> int:
    """Return the bytes of the root file system in the repository; 0 if the repository does not answer."""
    try:
        async with asyncio.timeout(_TIMEOUT), context.files.open(SOURCE) as body:
            return body.size or 0
    except (KubeError, StepFailed, TimeoutError):
        return 0
