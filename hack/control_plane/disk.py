"""Whether there is room for a build, before it begins."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from hack.control_plane.errors import ProvisionError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

#: The kernel's words for a full disk, which every program passes on.
FULL = "no space left on device"
_MIB = 1024 * 1024


def check_space(needs: Iterable[tuple[Path, int]]) -> None:
    """Raise ProvisionError where a disk has less room than the folders on it need together, in MiB."""
    disks: dict[int, list[tuple[Path, int]]] = {}
    for folder, needed in needs:
        disks.setdefault(_existing(folder).stat().st_dev, []).append((folder, needed))
    for wanted in disks.values():
        _check([folder for folder, _ in wanted], sum(needed for _, needed in wanted))


def full(folders: Iterable[Path]) -> ProvisionError:
    """What to say when a disk was full in the end."""
    return ProvisionError(
        f"no space is left on the disk of {', '.join(str(folder) for folder in sorted(set(folders)))}: "
        "make room there, or set XDG_CACHE_HOME (what is built), GOCACHE and GOMODCACHE (Go's own caches) "
        "to folders on another disk"
    )


def _check(folders: list[Path], needed: int) -> None:
    free = shutil.disk_usage(_existing(folders[0])).free // _MIB
    if free < needed:
        names = " and ".join(str(folder) for folder in folders)
        raise ProvisionError(
            f"{names} need about {needed} MiB and {free} MiB are free: make room there, or set XDG_CACHE_HOME "
            "(what is built), GOCACHE and GOMODCACHE (Go's own caches) to folders on another disk"
        )


def _existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that is there."""
    return next(path for path in (folder, *folder.parents) if path.exists())
