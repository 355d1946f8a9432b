"""Free space on the host's file systems, which VMs and the kubelet share with the upgrade.

images/image_import.py and iso/downloads.py check it before they write.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from upgrade_manager.toolkit.run.errors import OutOfSpace

if TYPE_CHECKING:
    from pathlib import Path

#: Bytes that stay free on a file system.
RESERVE = 1024 * 1024 * 1024
_MIB = 1024 * 1024


def free_bytes(path: Path) -> int:
    """Return the bytes that are free for files at the path, which need not exist."""
    while not path.exists():
        path = path.parent
    status = os.statvfs(path)
    return status.f_bavail * status.f_frsize


def require_space(path: Path, needed: int, *, purpose: str, place: str) -> None:
    """Raise OutOfSpace unless the needed bytes fit below the path, beside the reserve.

    `purpose` names the user of the space and `place` the directory, for the message.
    """
    free = free_bytes(path)
    if free < needed + RESERVE:
        raise OutOfSpace(
            f"{purpose} needs {-(-(needed + RESERVE) // _MIB)} MiB in {place} on the host, which has "
            f"{free // _MIB} MiB free. Free space on the node"
        )
