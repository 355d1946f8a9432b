"""The record of an OS upgrade, by which a repeated run continues and never installs the system twice.

The record is written before elemental changes an image, and has the inode of the image that runs. It is valid for one
release and one boot: after a reboot, the running operating system shows the result.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from upgrade_manager.toolkit.host.host_paths import ACTIVE_IMAGE, OS_WORK

if TYPE_CHECKING:
    from upgrade_manager.toolkit.host.host_tree import HostTree

RECORD = f"{OS_WORK}/upgrade.json"
_BOOT_ID = "/proc/sys/kernel/random/boot_id"


@dataclass(frozen=True, slots=True, kw_only=True)
class OsRecord:
    """An upgrade that was checked, and maybe begun."""

    #: The release's operating system.
    os: str
    #: The boot in which the upgrade was checked.
    boot: str
    #: Size of the new image.
    image_mib: int
    #: Space of the folder of which elemental makes the image.
    tree_mib: int
    #: Free space of the state partition before elemental runs.
    free_mib: int
    #: The inode of the image that runs, which is the active one before elemental: a rename keeps it, and the kernel
    #: gives it to no other file while the image runs.
    running: int
    #: The identity of the new image after all checks have passed; empty before.
    verified: str = ""


def load_record(tree: HostTree, *, os: str) -> OsRecord | None:
    """Return the record of this release and boot, or None."""
    record = record_of_boot(tree)
    return record if record is not None and record.os == os else None


def record_of_boot(tree: HostTree) -> OsRecord | None:
    """Return the record of this boot, of whichever release, or None."""
    record = last_record(tree)
    return record if record is not None and record.boot == boot_id(tree) else None


def last_record(tree: HostTree) -> OsRecord | None:
    """Return the record of whichever boot and release, or None."""
    try:
        return OsRecord(**json.loads(tree.read(RECORD) or ""))
    except (ValueError, TypeError):
        return None


def save_record(tree: HostTree, record: OsRecord) -> None:
    """Write the record durably."""
    tree.write(RECORD, json.dumps(asdict(record), indent=1) + "\n")


def save_verified(tree: HostTree, record: OsRecord) -> None:
    """Record that the active image passed all checks."""
    save_record(tree, replace(record, verified=image_identity(tree)))


def discard_record(tree: HostTree) -> None:
    """Forget the upgrade, so that the next run begins with its checks."""
    tree.remove(RECORD)


def is_installed(tree: HostTree, record: OsRecord | None) -> bool:
    """Return True if elemental has replaced the active image since the record was written."""
    return record is not None and image_inode(tree, ACTIVE_IMAGE) not in {0, record.running}


def is_verified(tree: HostTree, record: OsRecord | None) -> bool:
    """Return True if the active image is the one that passed all checks."""
    return record is not None and record.verified != "" and record.verified == image_identity(tree)


def image_inode(tree: HostTree, image: str) -> int:
    """Return the image's inode, 0 without the image."""
    path = tree.path(image)
    return path.stat().st_ino if path.exists() else 0


def image_identity(tree: HostTree) -> str:
    """Return a text that changes with the content of the active image; empty without an image."""
    path = tree.path(ACTIVE_IMAGE)
    if not path.exists():
        return ""
    status = path.stat()
    return f"{status.st_ino}:{status.st_size}:{status.st_mtime_ns}"


def boot_id(tree: HostTree) -> str:
    """Return the id of the host's boot, which changes with every boot."""
    return (tree.read(_BOOT_ID) or "").strip()
