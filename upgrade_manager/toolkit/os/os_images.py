"""The images of operating systems on the state partition: room for a new image, and the way back to the running one.

os_upgrade.py calls it before and after elemental.py; running_image.py says which image runs, image_check.py checks the
new one.

elemental copies the root file system to the partition twice: into a folder, and from there into a sparse file through
a loop device. On a full partition the kernel loses data that it cannot write, and no program of the upgrade sees an
error. Therefore this module makes room before, and watches the partition meanwhile.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NoReturn

import structlog

from upgrade_manager.toolkit.host.host_paths import (
    ACTIVE_IMAGE,
    ELEMENTAL_MOUNTS,
    PASSIVE_IMAGE,
    STATE_PARTITION,
    TRANSITION_IMAGE,
    TRANSITION_TREE,
)
from upgrade_manager.toolkit.host.host_programs import Call, run_program
from upgrade_manager.toolkit.os.running_image import loop_devices, running_image
from upgrade_manager.toolkit.run.errors import OutOfSpace, StepFailed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from upgrade_manager.toolkit.host.host_tree import HostTree
    from upgrade_manager.toolkit.run.context import ToolkitContext

#: Seconds for a program that may read or write a whole image.
_TIMEOUT = 900.0
#: MiB of the state partition that a good upgrade leaves free at any time; with less, the partition ran full.
LEAST_FREE = 32
#: MiB beside the new image's files.
EXTRA = 256
#: Files occupy a twentieth more on the state partition than their sizes; elemental has them there twice.
COPY = 1.05
#: Seconds between two reads of the free space while elemental runs.
_WATCH = 2.0

_log = structlog.get_logger(__name__)


async def make_room(context: ToolkitContext) -> None:
    """Remove the files of a killed elemental, and free the empty blocks of the fallback image."""
    async with writable(context):
        await _remove_interrupted(context)
        if context.tree.exists(PASSIVE_IMAGE):
            await _run(context, "fallocate", "--dig-holes", PASSIVE_IMAGE)


def interrupted(tree: HostTree) -> list[str]:
    """Return what a killed elemental has left; the next elemental would copy files of the folder into its image."""
    return [path for path in (TRANSITION_TREE, TRANSITION_IMAGE) if tree.exists(path)]


async def _remove_interrupted(context: ToolkitContext) -> None:
    paths = interrupted(context.tree)
    # A mount in this container outlives elemental: the kernel would not mount the partition read-only again.
    for mount in (place for place in ELEMENTAL_MOUNTS if paths and context.tree.exists(place)):
        await _try(context, "umount", "--recursive", mount)
    for device in loop_devices(context.tree, TRANSITION_IMAGE):
        await _try(context, "losetup", "--detach", device)
    if paths:
        # elemental mounts /oem and /usr/local into the folder: a mount that is left must keep its files.
        await _run(context, "rm", "--recursive", "--force", "--one-file-system", *paths)


def room_needed(files: int) -> int:
    """Return the free space that an image of these files needs, both in MiB."""
    return int(files * 2 * COPY) + EXTRA


async def check_room(context: ToolkitContext, needed: int) -> int:
    """Return the free space of the state partition in MiB. Raises OutOfSpace if it is less than needed."""
    free = await free_space(context)
    if free < needed:
        raise OutOfSpace(
            f"the new operating system needs {needed} MiB on the node's {STATE_PARTITION}, which has {free} MiB free. "
            f"Enlarge that partition, or remove {PASSIVE_IMAGE} (the fallback for boot failures) on node {context.node}"
        )
    return free


async def until_full(context: ToolkitContext) -> NoReturn:
    """Watch the state partition while elemental writes. Raises OutOfSpace once it is full."""
    while True:
        await asyncio.sleep(_WATCH)
        try:
            free = await free_space(context)
        except StepFailed as error:
            _log.warning("free space of the state partition not read", error=str(error))
            continue
        if free < LEAST_FREE:
            raise OutOfSpace(f"{STATE_PARTITION} ran full while elemental wrote to it ({free} MiB are left)")


async def free_space(context: ToolkitContext) -> int:
    """Return the free space of the state partition, in MiB."""
    return await _number(context, "df", "--output=avail", "--block-size=1M", STATE_PARTITION)


async def used_space(context: ToolkitContext, path: str) -> int:
    """Return the space that is used on the file system of the path, in MiB."""
    return await _number(context, "df", "--output=used", "--block-size=1M", path)


async def disk_usage(context: ToolkitContext, path: str) -> int:
    """Return the space that a file or directory occupies, in MiB."""
    return await _number(context, "du", "--summarize", "--block-size=1M", path)


async def copied_size(context: ToolkitContext, path: str) -> int:
    """Return the space of a copy by elemental's rsync, which keeps neither holes nor hard links, in MiB."""
    return await _number(context, "du", "--summarize", "--apparent-size", "--count-links", "--block-size=1M", path)


async def make_running_active(context: ToolkitContext) -> None:
    """Let the next boot start the image that runs; a fallback image that runs replaces the active image.

    elemental moves the active image over the fallback image, whichever runs: an image that runs would be lost. After a
    failure this is the way back. Raises StepFailed.
    """
    running = running_image(context.tree)
    if running == ACTIVE_IMAGE:
        return
    async with writable(context):
        await _run(context, "mv", "--force", running, ACTIVE_IMAGE)
        await _run(context, "sync", "--file-system", STATE_PARTITION)
        # The boot loader and the initramfs find the image by its path.
        await _try(context, "tune2fs", "-L", "COS_ACTIVE", ACTIVE_IMAGE)


@asynccontextmanager
async def writable(context: ToolkitContext) -> AsyncIterator[None]:
    """Mount the state partition writable while the block runs."""
    await _run(context, "mount", "-o", "remount,rw", STATE_PARTITION)
    try:
        yield
    finally:
        # A failure is only logged, because elemental and the next boot mount the partition themselves.
        await _try(context, "mount", "-o", "remount,ro", STATE_PARTITION)


async def _number(context: ToolkitContext, *argv: str) -> int:
    """Return the first number that the program prints. Raises StepFailed."""
    output = await run_program(context.programs, _call(*argv))
    found = next((word for word in output.stdout.split() if word.isdigit()), None)
    if found is None:
        raise StepFailed(f"{argv[0]} returned no number: {output.last_line or 'no output'}")
    return int(found)


async def _run(context: ToolkitContext, *argv: str) -> None:
    await run_program(context.programs, _call(*argv))


async def _try(context: ToolkitContext, *argv: str) -> None:
    """Run a program whose error is only logged."""
    output = await context.programs.run(_call(*argv))
    if output.status != 0:
        _log.warning("program failed", argv=list(argv), error=output.last_line)


def _call(*argv: str) -> Call:
    return Call(argv=argv, timeout=_TIMEOUT)
