"""The steps that replace the host's operating system by the release's, which the next boot starts.

The commands post_drain and single_node_upgrade run these steps; os_record.py has the record, reboot.py follows.

The system that runs stays the one that the next boot starts until elemental has written the new image. After a later
failure, the steps make it that again. running_image.py says which image it is.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import structlog

from upgrade_manager.release.migrations.nodes import GRUB_FILES, KERNEL_ARGUMENTS, STATE_FILE, STATE_MOUNT
from upgrade_manager.release.migrations.v1_7_to_v1_8 import NIC_NAMES
from upgrade_manager.toolkit.host.host_paths import ACTIVE_IMAGE, PASSIVE_IMAGE
from upgrade_manager.toolkit.iso.downloads import Downloads
from upgrade_manager.toolkit.os.boot_assessment import forget_attempt
from upgrade_manager.toolkit.os.elemental import CONFIG, run_elemental
from upgrade_manager.toolkit.os.grub_files import files_missing, write_files
from upgrade_manager.toolkit.os.image_check import verify_image
from upgrade_manager.toolkit.os.kernel_arguments import (
    arguments_missing,
    check_arguments,
    check_names,
    restore_arguments,
    write_arguments,
)
from upgrade_manager.toolkit.os.os_images import (
    COPY,
    EXTRA,
    check_room,
    copied_size,
    interrupted,
    make_room,
    make_running_active,
    room_needed,
)
from upgrade_manager.toolkit.os.os_record import (
    OsRecord,
    boot_id,
    discard_record,
    image_inode,
    is_installed,
    is_verified,
    load_record,
    record_of_boot,
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
from upgrade_manager.toolkit.os.running_image import is_fallback_boot, running_image
from upgrade_manager.toolkit.os.state_file import move_state_file, state_file_incomplete
from upgrade_manager.toolkit.run.errors import StepFailed
from upgrade_manager.toolkit.run.steps import Step

if TYPE_CHECKING:
    from upgrade_manager.toolkit.host.host_tree import HostTree
    from upgrade_manager.toolkit.run.context import ToolkitContext

#: MiB of the smallest image; a larger root file system gets a larger one.
_SMALLEST_IMAGE = 3072
#: The image's size is a multiple of this.
_ROUND = 256
#: A file system needs a tenth more than its files, and some MiB.
_OVERHEAD = 1.1

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
    await _secure_running(context)
    async with mounted_rootfs(context):
        files = await copied_size(context, MOUNT_POINT)
    await make_room(context)
    free = await check_room(context, room_needed(files))
    save_record(
        context.tree,
        OsRecord(
            os=os,
            boot=boot,
            image_mib=max(_SMALLEST_IMAGE, -(-int(files * _OVERHEAD + EXTRA) // _ROUND) * _ROUND),
            tree_mib=int(files * COPY),
            free_mib=free,
            running=image_inode(context.tree, ACTIVE_IMAGE),
        ),
    )


async def _secure_running(context: ToolkitContext) -> None:
    """Make the image that runs the active one, which elemental keeps and GRUB starts until then. Raises StepFailed."""
    try:
        if running_image(context.tree) == PASSIVE_IMAGE:
            refuse_pending(context.tree)
    except StepFailed as error:
        raise StepFailed(f"{error}. Reboot node {context.node} from its disk, and retry the upgrade") from error
    await make_running_active(context)
    await forget_attempt(context)


def refuse_pending(tree: HostTree) -> None:
    """Raise StepFailed if another system was installed since the boot: the next boot has to start it first."""
    if not tree.exists(ACTIVE_IMAGE):
        return
    record = record_of_boot(tree)
    if record is None and not is_fallback_boot(tree):
        raise StepFailed(f"another program has replaced {ACTIVE_IMAGE} since the last boot")
    if record is not None and is_verified(tree, record):
        raise StepFailed(f"{record.os} was installed since the last boot, and was not booted")


async def install_missing(context: ToolkitContext) -> str:
    """Return an empty text once the active image is the new image, or if the node needs no new image."""
    if await runs_release(context) or is_installed(context.tree, await record_of(context)):
        return ""
    return f"{await release_os(context)} is not installed"


async def install_os(context: ToolkitContext) -> None:
    """Run elemental once. Raises StepFailed, with the operating system that runs active."""
    record = await _recorded(context)
    # An earlier run may have been killed while elemental wrote, or while it renamed images.
    await _secure_running(context)
    if interrupted(context.tree):
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
    """Check the new image before anything boots it. Raises StepFailed, with the operating system that runs active."""
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
    """Make the operating system that runs active again, and return the error for users."""
    if image_inode(context.tree, ACTIVE_IMAGE) != record.running:
        try:
            await make_running_active(context)
        except StepFailed as error:
            _log.exception("running operating system not restored")
            return StepFailed(
                f"{cause}. DO NOT REBOOT node {context.node}: its previous operating system cannot be restored: {error}"
            )
    if interrupted(context.tree):
        # The partition may be full; the next attempt tries again.
        with suppress(StepFailed):
            await make_room(context)
    discard_record(context.tree)
    try:
        await restore_arguments(context)
    except StepFailed as error:
        cause = f"{cause}. The kernel's arguments are those of the release: {error}"
    return StepFailed(f"{cause}. The node keeps {os_name(context.tree)}")


#: The steps that do not change the running system.
PREPARE_STEPS = (
    Step(name="check-kernel-arguments", timeout=60, act=check_arguments, row=KERNEL_ARGUMENTS),
    Step(name="download-os", timeout=2 * 3600, missing=download_missing, act=download_rootfs),
    Step(name="check-os", timeout=3600, missing=check_missing, act=check_os),
)
INSTALL_STEPS = (
    Step(name="create-grub-files", timeout=60, missing=files_missing, act=write_files, row=GRUB_FILES),
    Step(
        name="write-kernel-arguments",
        timeout=60,
        missing=arguments_missing,
        act=write_arguments,
        row=KERNEL_ARGUMENTS,
    ),
    Step(name="check-nic-names", timeout=60, act=check_names, row=NIC_NAMES),
    Step(name="move-state-file", timeout=300, missing=state_file_incomplete, act=move_state_file, row=STATE_FILE),
    Step(name="install-os", timeout=2 * 3600, missing=install_missing, act=install_os, row=STATE_MOUNT),
    Step(name="verify-os", timeout=3600, missing=verify_missing, act=verify_os),
    Step(name="remove-os-download", timeout=300, missing=leftovers, act=remove_leftovers),
)
