"""The program elemental 1.1.7: writes a root file system to a new image, and moves the active over the passive image.

os_programs.py starts it; state_partition.py has the images. What it does, in this order, is the upgrade of
rancher/elemental-toolkit v1.1.7 (pkg/action/upgrade.go, Run; pkg/elemental/elemental.go, DeployImgTree and
CreateImageFromTree; pkg/utils/common.go, SyncData and CreateDirStructure):

- the root file system is copied into cOS/transition.imgTree by rsync without --delete, and from there into
  transition.img; the folder is removed afterwards, so that the partition holds the files twice meanwhile;
- between both copies, its hook after-upgrade lets GRUB assess the next boot (boot_assessment.py);
- `mv -f active.img passive.img`, whichever of the two runs: nothing reads /run/cos, /proc/cmdline or the loop device;
- `mv -f transition.img active.img`;
- at the end, and after an error, it removes the folder and transition.img and mounts the partition read-only. The
  kernel refuses that (EBUSY) while the running image is unlinked; elemental returns 1, with both images renamed.

The image is a sparse file on a loop device: on a full partition the kernel loses what it cannot write, and elemental
sees no error. A killed elemental leaves all of it, its loop device, and the mount of the folder at its working place:
while that is there, the kernel refuses to mount the partition read-only once the folder was removed.
"""

from __future__ import annotations

import asyncio
import shutil
from typing import TYPE_CHECKING

import yaml

from hack.host import boot_assessment, state_partition
from hack.host.state_partition import ACTIVE, PASSIVE, STATE, TRANSITION, TREE, WORKING
from upgrade_manager.toolkit.host.host_programs import Output
from upgrade_manager.toolkit.host.host_tree import HostTree

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hack.host.state import HostState

_LOST = "!usr/share/p11-kit/modules/p11-kit-trust.module\n"
#: As logrus writes its errors to standard output, with colours also without a terminal (cmd/config/config.go).
_ERROR = "\x1b[31mERRO\x1b[0m[2026-01-01T00:00:00Z] {}\n"
#: As the library k8s.io/mount-utils writes to standard error; the last line is a hint of mount.
_BUSY = f"""E0101 00:00:00.000000   22803 mount_linux.go:195] Mount failed: exit status 32
Mounting command: mount
Mounting arguments: -t auto -o remount,ro /dev/sda4 {STATE}
Output: mount: {STATE}: mount point is busy.
       dmesg(1) may have more information after failed mount system call.
"""


class _Failed(Exception):
    """An error that elemental logs."""


class SimulatedElemental:
    """One host's elemental; `stage` is called before each part, and may end it like SIGKILL."""

    def __init__(self, root: Path, state: HostState, *, stage: Callable[[str], None]) -> None:
        self._root = root
        self._state = state
        self._stage = stage

    async def upgrade(self, source: str, *, log: str, folder: str) -> Output:
        """Install the directory `source`. The log grows with each run."""
        with self._path(log).open("a", encoding="utf-8") as file:
            file.write(f"Upgrade called with {source}\n")
        config = yaml.safe_load(self._path(f"{folder}/config.yaml").read_text(encoding="utf-8"))
        if source not in self._state.mounts or not self._path("/oem/grubenv").exists():
            return Output(status=1, stderr="level=error msg=undefined upgrade source")
        if self._state.damage == "elsewhere":
            return Output(status=0)
        errors = ""
        if self._state.state_device.startswith("/dev/mapper/") and "/run/cos/state" not in self._state.mounts:
            # It finds the partition on the disk below the mapper, not mounted, and mounts it beside: read-only
            # (harvester/harvester v1.8.0: package/upgrade/upgrade_node.sh:63).
            return Output(status=1, stdout=_ERROR.format("mkdir /run/cos/state/cOS/transition.imgTree: read-only"))
        self._state.mounts[STATE] = "rw"
        try:
            await self._copy_tree(source)
            await self._write_image(config["upgrade"]["system"]["size"])
            self._rename_images()
        except _Failed as error:
            errors = _ERROR.format(error)
        self._clean()
        return self._remount(errors)

    async def _copy_tree(self, source: str) -> None:
        self._stage("the copy of the tree")
        tree, found = self._path(TREE), self._path(source)
        room, needed = self.room(), self._state.rootfs_mib - self._state.written.get(TREE, 0)
        written = min(room, max(0, needed))
        # rsync copies onto what an earlier run has left.
        state_partition.unpack(state_partition.pack(found), tree)
        self._path(WORKING).mkdir(parents=True, exist_ok=True)
        self._state.mounts[WORKING] = TREE
        self._state.written[TREE] = self._state.written.get(TREE, 0) + written // 2
        await self._work("the second half of the tree")
        self._state.written[TREE] += written - written // 2
        if written < needed:
            raise _Failed("rsync finished with errors: exit status 11")
        boot_assessment.enable(self._path(STATE))
        await self._work("the image")

    async def _write_image(self, size: int) -> None:
        state, image = self._state, self._path(TRANSITION)
        image.write_text("half an image\n", encoding="utf-8")
        state.written[TRANSITION] = 0
        state_partition.attach(self._root, TRANSITION)
        if size <= state.rootfs_mib:
            raise _Failed("failed syncing data to the target loop image: exit status 11")
        written = min(self.room(), state.image_mib)
        state.written[TRANSITION] = written // 2
        await self._work("the second half of the image")
        state.written[TRANSITION] = written
        lost = _LOST if written < state.image_mib or state.damage == "content" else ""
        image.write_text(state_partition.pack(self._path(TREE)) + lost, encoding="utf-8")
        await self._work("the removal of the tree")
        state_partition.detach(self._root)
        self._remove_tree()

    def _rename_images(self) -> None:
        self._stage("the rename of the active image")
        if not self._path(ACTIVE).exists():
            raise _Failed(f"Failed to move {ACTIVE} to {PASSIVE}: exit status 1")
        self._move(ACTIVE, PASSIVE)
        self._state.written[PASSIVE] = self._state.written.get(ACTIVE, 0)
        self._stage("the rename of the new image")
        if self._state.damage == "renames":
            raise _Failed(f"Error while labeling the passive image {PASSIVE}: exit status 1")
        self._move(TRANSITION, ACTIVE)
        self._state.written[ACTIVE] = self._state.written.pop(TRANSITION)
        self._stage("the removal of what it needed")

    def _move(self, source: str, target: str) -> None:
        self._path(source).replace(self._path(target))
        state_partition.refresh(self._root)

    def _clean(self) -> None:
        state_partition.detach(self._root)
        self._remove_tree()
        self._path(TRANSITION).unlink(missing_ok=True)
        self._state.written.pop(TRANSITION, None)
        state_partition.refresh(self._root)

    def _remount(self, errors: str) -> Output:
        """Mount the partition read-only again, and return the result."""
        if state_partition.is_unlinked(self._root):
            failed = _ERROR.format("Failed mounting device /dev/sda4 with label COS_STATE")
            return Output(status=1, stdout=errors + failed, stderr=_BUSY)
        self._state.mounts.pop(STATE, None)
        return Output(status=1 if errors else 0, stdout=errors)

    def _remove_tree(self) -> None:
        self._state.mounts.pop(WORKING, None)
        shutil.rmtree(self._path(TREE), ignore_errors=True)
        self._state.written.pop(TREE, None)

    async def _work(self, following: str) -> None:
        await asyncio.sleep(self._state.copy_seconds)
        self._stage(following)

    def room(self) -> int:
        """Return the free space of the partition, in MiB."""
        held = state_partition.is_attached(self._root)
        counts = {TREE: self._path(TREE).exists(), TRANSITION: held or self._path(TRANSITION).exists()}
        used = sum(self._state.written.get(path, 0) for path, there in counts.items() if there)
        return max(0, self._state.free_mib - used)

    def _path(self, absolute: str) -> Path:
        return HostTree(self._root).path(absolute)
