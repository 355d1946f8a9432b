"""The image that the host runs, by the inode behind the loop device of its root file system, never by a name.

os_upgrade.py and os_images.py ask for it before they rename images; os_record.py keeps its inode. GRUB starts
passive.img after active.img has failed to boot, and each installation renames both, so that neither the name under
which the host was booted nor a present name says which image runs. The kernel's name of the loop device's file follows
renames, and ends with "(deleted)" once the image is unlinked.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from upgrade_manager.toolkit.host.host_paths import ACTIVE_IMAGE, PASSIVE_IMAGE
from upgrade_manager.toolkit.run.errors import StepFailed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from upgrade_manager.toolkit.host.host_tree import HostTree

#: The mounts of the host's first process: a line has the device's number, its root, and the mount point.
_MOUNTS = "/proc/1/mountinfo"
_ROOT = re.compile(r"^\d+ \d+ (?P<device>\d+:\d+) \S+ / ", re.MULTILINE)
_BLOCK = "/sys/block"
_COMMAND_LINE = "/proc/cmdline"
_BOOTED = re.compile(r"(?:^|\s)cos-img/filename=(?P<path>\S+)")
_UNLINKED = " (deleted)"


def running_image(tree: HostTree) -> str:
    """Return the path of the image that runs: that of active.img or of passive.img. Raises StepFailed for neither."""
    backing = _running_file(tree)
    if backing.endswith(_UNLINKED):
        name = PurePosixPath(backing.removesuffix(_UNLINKED)).name
        raise StepFailed(f"an installation since the last boot has removed the image that the node runs ({name})")
    for image in (ACTIVE_IMAGE, PASSIVE_IMAGE):
        if PurePosixPath(backing).parts[-2:] == PurePosixPath(image).parts[-2:] and tree.exists(image):
            return image
    raise StepFailed(f"the node runs {backing or 'no image of a disk'}, which is neither active.img nor passive.img")


def is_fallback_boot(tree: HostTree) -> bool:
    """Return True if the boot loader has started passive.img, as it does after active.img has failed to boot."""
    found = _BOOTED.search(tree.read(_COMMAND_LINE) or "")
    return found is not None and PurePosixPath(found["path"]).name == PurePosixPath(PASSIVE_IMAGE).name


def loop_devices(tree: HostTree, image: str) -> list[str]:
    """Return the loop devices of an image, which keep its space after its removal."""
    return [f"/dev/{name}" for name, file in _loops(tree) if file.removesuffix(_UNLINKED) == image]


def _running_file(tree: HostTree) -> str:
    """Return the file of the root file system's loop device; empty for another root file system."""
    root = next(reversed(_ROOT.findall(tree.read(_MOUNTS) or "")), None)
    return next((file for name, file in _loops(tree) if (tree.read(f"{_BLOCK}/{name}/dev") or "").strip() == root), "")


def _loops(tree: HostTree) -> Iterator[tuple[str, str]]:
    """Yield each loop device that has a file, and the file."""
    for name in tree.names(_BLOCK):
        file = tree.read(f"{_BLOCK}/{name}/loop/backing_file") if name.startswith("loop") else None
        if file:
            yield name, file.strip()
