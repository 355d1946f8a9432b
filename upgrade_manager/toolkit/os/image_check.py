"""The checks of a new image on the disk, before anything boots it.

os_upgrade.py calls it after elemental.py; os_images.py has the room that the image needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.toolkit.host.host_paths import ACTIVE_IMAGE, STATE_PARTITION
from upgrade_manager.toolkit.host.host_programs import Call, run_program
from upgrade_manager.toolkit.os.os_images import LEAST_FREE, disk_usage
from upgrade_manager.toolkit.os.os_rootfs import IMAGE_MOUNT_POINT, MOUNT_POINT, mounted, mounted_rootfs
from upgrade_manager.toolkit.run.errors import OutOfSpace, StepFailed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from upgrade_manager.toolkit.os.os_record import OsRecord
    from upgrade_manager.toolkit.run.context import ToolkitContext

#: Seconds for a program that may read a whole image, or two.
_TIMEOUT = 900.0
_COMPARE_TIMEOUT = 1800.0
_COMPARE = ("rsync", "--archive", "--checksum", "--dry-run", "--itemize-changes", "--delete")
#: rsync's codes for a file whose content differs, although its size and time are equal, and for one that only the image
#: has; a file that the image lacks has the mark of a new one behind its kind.
_LOST = ">fc.."
_EXTRA = "*deleting"
_NEW = "+++++++++"
#: The folders of which elemental copies nothing (rancher/elemental-toolkit v1.1.7: pkg/elemental/elemental.go,
#: DumpSource).
_NOT_COPIED = ("mnt/", "proc/", "sys/", "dev/", "tmp/", "host/", "run/")
#: The folders that elemental creates (pkg/utils/common.go, CreateDirStructure) and that of every ext file system.
_CREATED = frozenset(
    {
        "boot/",
        "etc/elemental/",
        "etc/elemental/config.d/",
        "lost+found/",
        "oem/",
        "system/",
        "usr/local/",
        *_NOT_COPIED,
    }
)
#: Folders whose content a boot hides: elemental and its hooks may leave files there.
_HIDDEN = ("dev/", "oem/", "proc/", "run/", "sys/", "tmp/")


async def verify_image(context: ToolkitContext, record: OsRecord) -> None:
    """Check the new active image on the disk. Raises StepFailed."""
    # sync of a file also returns the errors of delayed writes.
    await _run(context, "sync", ACTIVE_IMAGE)
    used = await disk_usage(context, ACTIVE_IMAGE)
    # The folder of which elemental made the image was on the partition at the same time.
    if record.free_mib - record.tree_mib - used < LEAST_FREE:
        raise OutOfSpace(
            f"{STATE_PARTITION} ran full: the new image occupies {used} MiB, and was made of {record.tree_mib} MiB of "
            f"files, where {record.free_mib} MiB were free"
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
        argv = (*_COMPARE, f"{MOUNT_POINT}/", f"{IMAGE_MOUNT_POINT}/")
        output = await run_program(context.programs, Call(argv=argv, timeout=_COMPARE_TIMEOUT))
    refuse_differences(output.stdout)


def refuse_differences(listing: str) -> None:
    """Raise StepFailed for a difference in rsync's list that neither elemental nor its hooks make."""
    lines = [(code, path.lstrip()) for code, _, path in (line.partition(" ") for line in listing.splitlines())]
    _refuse("it lost the content of {} files", (path for code, path in lines if code.startswith(_LOST)))
    _refuse(
        "it lacks {} files", (path for code, path in lines if code[2:] == _NEW and not path.startswith(_NOT_COPIED))
    )
    _refuse(
        "it has {} files that the release does not have",
        (path for code, path in lines if code == _EXTRA and path not in _CREATED and not path.startswith(_HIDDEN)),
    )


def _refuse(what: str, paths: Iterable[str]) -> None:
    """Raise StepFailed if there is a path."""
    if found := list(paths):
        raise StepFailed(f"{what.format(len(found))}, such as /{found[0]}")


async def _run(context: ToolkitContext, *argv: str) -> None:
    await run_program(context.programs, Call(argv=argv, timeout=_TIMEOUT))
