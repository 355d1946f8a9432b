"""The images of operating systems on the state partition: room for a new image, its checks, and the rollback.

os_upgrade.py calls it before and after elemental.py.

elemental writes a sparse file through a loop device. On a full partition the kernel loses data that it cannot write,
and no program of the upgrade sees an error. Therefore this module makes room before, and four checks afterwards.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import structlog

from upgrade_manager.toolkit.host.host_paths import ACTIVE_IMAGE, PASSIVE_IMAGE, STATE_PARTITION, TRANSITION_IMAGE
from upgrade_manager.toolkit.host.host_programs import Call, run_program
from upgrade_manager.toolkit.os.os_rootfs import IMAGE_MOUNT_POINT, MOUNT_POINT, mounted, mounted_rootfs
from upgrade_manager.toolkit.run.errors import OutOfSpace, StepFailed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from upgrade_manager.toolkit.os.os_record import OsRecord
    from upgrade_manager.toolkit.run.context import ToolkitContext

#: Seconds for a program that may read or write a whole image.
_TIMEOUT = 900.0
_COMPARE_TIMEOUT = 1800.0
#: MiB of the state partition that a good upgrade leaves free; with less, the partition ran full in between.
_LEAST_FREE = 32
#: rsync's code for a file whose content differs, although its size and time are equal.
_LOST = ">fc.."

_log = structlog.get_logger(__name__)


async def make_room(context: ToolkitContext) -> None:
    """Remove the files of a killed elemental, and free the empty blocks of the previous operating system."""
    async with _writable(context):
        context.tree.remove(TRANSITION_IMAGE)
        if context.tree.exists(PASSIVE_IMAGE):
            await _run(context, "fallocate", "--dig-holes", PASSIVE_IMAGE)


async def check_room(context: ToolkitContext, needed: int) -> int:
    """Return the free space of the state partition in MiB. Raises OutOfSpace if it is less than needed."""
    free = await _number(context, "df", "--output=avail", "--block-size=1M", STATE_PARTITION)
    if free < needed:
        raise OutOfSpace(
            f"the new operating system needs {needed} MiB on the node's {STATE_PARTITION}, which has {free} MiB free. "
            f"Enlarge that partition, or remove {PASSIVE_IMAGE} (the fallback for boot failures) on node {context.node}"
        )
    return free


async def disk_usage(context: ToolkitContext, path: str) -> int:
    """Return the space that a file or directory occupies, in MiB."""
    return await _number(context, "du", "--summarize", "--block-size=1M", path)


async def verify_image(context: ToolkitContext, record: OsRecord) -> None:
    """Check the new active image on the disk. Raises StepFailed."""
    # sync of a file also returns the errors of delayed writes.
    await _run(context, "sync", ACTIVE_IMAGE)
    used = await disk_usage(context, ACTIVE_IMAGE)
    if record.free_mib - used < _LEAST_FREE:
        raise OutOfSpace(
            f"{STATE_PARTITION} ran full: the new image occupies {used} of the {record.free_mib} MiB that were free"
        )
    # Without -f, e2fsck counts a damaged file system that was unmounted properly as clean.
    await _run(context, "e2fsck", "-f", "-n", ACTIVE_IMAGE)
    await _compare(context)


async def _compare(context: ToolkitContext) -> None:
    """Compare the files in the new image with the root file system. Raises StepFailed.

    The file system's check does not detect lost content: such files have the right size and time, but contain zeros.
    Files that elemental's hooks have changed have another time.
    """
    image = mounted(context, "-o", "loop,ro", ACTIVE_IMAGE, IMAGE_MOUNT_POINT)
    async with mounted_rootfs(context), image:
        flags = ("--archive", "--checksum", "--dry-run", "--itemize-changes")
        argv = ("rsync", *flags, f"{MOUNT_POINT}/", f"{IMAGE_MOUNT_POINT}/")
        output = await run_program(context.programs, Call(argv=argv, timeout=_COMPARE_TIMEOUT))
    lost = [line.partition(" ")[2] for line in output.stdout.splitlines() if line.startswith(_LOST)]
    if lost:
        raise StepFailed(f"it lost the content of {len(lost)} files, such as /{lost[0]}")


async def restore_previous(context: ToolkitContext) -> None:
    """Make the previous operating system, which runs, active again after elemental has renamed its image to passive.

    No other image is left afterwards. Raises StepFailed.
    """
    if not context.tree.exists(PASSIVE_IMAGE):
        raise StepFailed(f"{PASSIVE_IMAGE} does not exist")
    async with _writable(context):
        # The boot loader starts the image by its name, the kernel finds it by its label.
        await _run(context, "tune2fs", "-L", "COS_ACTIVE", PASSIVE_IMAGE)
        await _run(context, "mv", "--force", PASSIVE_IMAGE, ACTIVE_IMAGE)
        await _run(context, "sync", "--file-system", STATE_PARTITION)


@asynccontextmanager
async def _writable(context: ToolkitContext) -> AsyncIterator[None]:
    """Mount the state partition writable while the block runs."""
    await _run(context, "mount", "-o", "remount,rw", STATE_PARTITION)
    try:
        yield
    finally:
        # A failure is only logged, because elemental and the next boot mount the partition themselves.
        output = await context.programs.run(_call("mount", "-o", "remount,ro", STATE_PARTITION))
        if output.status != 0:
            _log.warning("state partition stays writable", error=output.last_line)


async def _number(context: ToolkitContext, *argv: str) -> int:
    """Return the first number that the program prints. Raises StepFailed."""
    output = await run_program(context.programs, _call(*argv))
    found = next((word for word in output.stdout.split() if word.isdigit()), None)
    if found is None:
        raise StepFailed(f"{argv[0]} returned no number: {output.last_line or 'no output'}")
    return int(found)


async def _run(context: ToolkitContext, *argv: str) -> None:
    await run_program(context.programs, _call(*argv))


def _call(*argv: str) -> Call:
    return Call(argv=argv, timeout=_TIMEOUT)
