"""The steps that replace the host's operating system by the release's, which the next boot starts.

The commands post_drain and single_node_upgrade run these steps; os_record.py has the record, reboot.py follows.

The previous system stays unchanged until elemental has written the new image. After a later failure, the steps make the
previous system active again.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import structlog

from upgrade_manager.toolkit.host.host_paths import ACTIVE_IMAGE, TRANSITION_IMAGE
from upgrade_manager.toolkit.iso.downloads import Downloads
from upgrade_manager.toolkit.os.elemental import CONFIG, run_elemental
from upgrade_manager.toolkit.os.os_images import check_room, disk_usage, make_room, restore_previous, verify_image
from upgrade_manager.toolkit.os.os_record import (
    OsRecord,
    boot_id,
    discard_record,
    image_inode,
    is_installed,
    is_verified,
    load_record,
    save_record,
    save_verified,
)
from upgrade_manager.toolkit.os.os_release import os_name, release_os, runs_release
from upgrade_manager.toolkit.os.os_rootfs import (
    MOUNT_POINT,
    MOUNT_POINTS,
    SOURCE,
    download_rootfs,
    downloads,
    mounted_rootfs,
    rootfs_path,
    unmount_all,
)
from upgrade_manager.toolkit.run.errors import StepFailed
from upgrade_manager.toolkit.run.steps import Step

if TYPE_CHECKING:
    from upgrade_manager.toolkit.run.context import ToolkitContext

#: MiB of the smallest image; a larger root file system gets a larger one.
_SMALLEST_IMAGE = 3072
#: The image's size is a multiple of this.
_ROUND = 256
#: A file system needs a tenth more than its files, and some MiB.
_OVERHEAD = 1.1
_EXTRA = 256

_log = structlog.get_logger(__name__)


async def record_of(context: ToolkitContext) -> OsRecord | None:
    """Return the record of this release and boot, or None."""
    return load_record(context.tree, os=await release_os(context))


async def download_missing(context: ToolkitContext) -> str:
    """Return an empty text once the root file system is downloaded, or if the upgrade does not need it."""
    os = await release_os(context)
    if await runs_release(context) or is_installed(context.tree, await record_of(context)):
        return ""
    path = rootfs_path(os)
    complete = await Downloads.of(context).is_complete(SOURCE, path)
    return "" if complete else f"{path} is not downloaded"


async def check_missing(context: ToolkitContext) -> str:
    """Return an empty text once the upgrade is checked and recorded, or not needed."""
    if await runs_release(context) or await record_of(context) is not None:
        return ""
    return f"the upgrade from {os_name(context.tree)} to {await release_os(context)} is not checked"


async def check_os(context: ToolkitContext) -> None:
    """Check the requirements of the new image, and record the upgrade before it begins. Raises StepFailed."""
    os, boot = await release_os(context), boot_id(context.tree)
    if not context.tree.exists(ACTIVE_IMAGE):
        # The host lost its power while elemental renamed images.
        await restore_previous(context)
    async with mounted_rootfs(context):
        needed = int(await disk_usage(context, MOUNT_POINT) * _OVERHEAD) + _EXTRA
    await make_room(context)
    free = await check_room(context, needed)
    save_record(
        context.tree,
        OsRecord(
            os=os,
            boot=boot,
            image_mib=max(_SMALLEST_IMAGE, -(-needed // _ROUND) * _ROUND),
            free_mib=free,
            previous=image_inode(context.tree, ACTIVE_IMAGE),
        ),
    )


async def install_missing(context: ToolkitContext) -> str:
    """Return an empty text once the active image is the new image, or if the node needs no new image."""
    if await runs_release(context) or is_installed(context.tree, await record_of(context)):
        return ""
    return f"{await release_os(context)} is not installed"


async def install_os(context: ToolkitContext) -> None:
    """Run elemental once. Raises StepFailed, with the previous operating system active."""
    record = await _recorded(context)
    if image_inode(context.tree, ACTIVE_IMAGE) == 0:
        # An earlier run was killed while elemental renamed images.
        await restore_previous(context)
    if context.tree.exists(TRANSITION_IMAGE):
        await make_room(context)
    try:
        await _install(context, record)
    except StepFailed as error:
        raise await _failure(context, record, str(error)) from error


async def _install(context: ToolkitContext, record: OsRecord) -> None:
    async with mounted_rootfs(context):
        await run_elemental(context, image_mib=record.image_mib)
    if not is_installed(context.tree, record):
        raise StepFailed(
            f"elemental returned 0 but did not replace {ACTIVE_IMAGE}; has another disk partitions of these labels?"
        )


async def verify_missing(context: ToolkitContext) -> str:
    """Return an empty text once the new image passed all checks, or is not needed."""
    if await runs_release(context) or is_verified(context.tree, await record_of(context)):
        return ""
    return f"{ACTIVE_IMAGE} is not checked"


async def verify_os(context: ToolkitContext) -> None:
    """Check the new image before anything boots it. Raises StepFailed, with the previous operating system active."""
    record = await _recorded(context)
    try:
        await verify_image(context, record)
    except StepFailed as error:
        raise await _failure(context, record, f"the new {ACTIVE_IMAGE} is corrupt: {error}") from error
    save_verified(context.tree, record)


async def leftovers(context: ToolkitContext) -> str:
    """Return the files that the upgrade no longer needs."""
    folders = [path for path in (*MOUNT_POINTS, CONFIG) if context.tree.exists(path)]
    return ", ".join([*downloads(context.tree), *folders])


async def remove_leftovers(context: ToolkitContext) -> None:
    """Unmount and remove the download; the record and elemental's log stay."""
    await unmount_all(context)
    for path in downloads(context.tree):
        context.tree.remove(path)
    context.tree.remove(CONFIG)
    for path in MOUNT_POINTS:
        # Only the empty directory is removed, because any content belongs to a mount.
        with suppress(OSError):
            context.tree.path(path).rmdir()


async def _recorded(context: ToolkitContext) -> OsRecord:
    record = await record_of(context)
    if record is None:
        raise StepFailed("the record of the upgrade has disappeared")
    return record


async def _failure(context: ToolkitContext, record: OsRecord, cause: str) -> StepFailed:
    """Make the previous operating system active again, and return the error for users."""
    if image_inode(context.tree, ACTIVE_IMAGE) != record.previous:
        try:
            await restore_previous(context)
        except StepFailed as error:
            _log.exception("previous operating system not restored")
            return StepFailed(
                f"{cause}. DO NOT REBOOT node {context.node}: its previous operating system cannot be restored: {error}"
            )
    discard_record(context.tree)
    return StepFailed(f"{cause}. The node keeps {os_name(context.tree)}")


#: The steps that do not change the running system.
PREPARE_STEPS = (
    Step(name="download-os", timeout=2 * 3600, missing=download_missing, act=download_rootfs),
    Step(name="check-os", timeout=3600, missing=check_missing, act=check_os),
)
INSTALL_STEPS = (
    Step(name="install-os", timeout=2 * 3600, missing=install_missing, act=install_os),
    Step(name="verify-os", timeout=3600, missing=verify_missing, act=verify_os),
    Step(name="remove-os-download", timeout=300, missing=leftovers, act=remove_leftovers),
)
