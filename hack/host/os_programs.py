"""The host's programs that replace its operating system and reboot it.

Images and root file systems are text files that name their operating system, as /etc/os-release does.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from hack.host import boot_assessment, state_partition
from hack.host.elemental import SimulatedElemental
from hack.host.state_partition import ACTIVE, PASSIVE, STATE, TRANSITION, TREE, WORKING
from hack.host.systemd import systemctl
from hack.host.time_programs import TimePrograms
from upgrade_manager.toolkit.host.host_programs import Output
from upgrade_manager.toolkit.host.host_tree import HostTree

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

    from hack.host.state import HostState

_ELEMENTAL = "/usr/bin/elemental"
#: The place at which elemental mounts the state partition, unless it finds it mounted.
ELEMENTAL_STATE = "/run/cos/state"
#: Status of mount and umount for a failed system call.
_MOUNT_FAILED = 32
#: Status of e2fsck for errors that it did not correct.
_UNCORRECTED = 4
_INACTIVE = 3


class OsPrograms:
    """Programs by name, on a tree and its state."""

    def __init__(self, tree: Path, state: HostState, *, stage: Callable[[str], None]) -> None:
        self._tree = tree
        self._state = state
        self._simulated = SimulatedElemental(tree, state, stage=stage)
        self.handlers: dict[str, Callable[[Sequence[str], bytes], Awaitable[Output]]] = {
            **TimePrograms(state).handlers,
            "blkid": self._blkid,
            "df": self._df,
            "du": self._du,
            "e2fsck": self._e2fsck,
            "elemental": self._elemental,
            "fallocate": self._change,
            "grub2-editenv": self._grub2_editenv,
            "losetup": self._losetup,
            "mount": self._mount,
            "mv": self._mv,
            "rm": self._rm,
            "rsync": self._rsync,
            "sync": self._sync,
            "systemctl": self._systemctl,
            "systemd-run": self._systemd_run,
            "tune2fs": self._change,
            "umount": self._umount,
        }

    def _path(self, absolute: str) -> Path:
        return HostTree(self._tree).path(absolute)

    async def _mount(self, arguments: Sequence[str], _: bytes) -> Output:
        match list(arguments):
            case ["-o", "remount,rw", target]:
                self._state.mounts[target] = "rw"
            case ["-o", "remount,ro", target] if target == STATE and self._keeps_unlinked_files():
                return Output(status=_MOUNT_FAILED, stderr=f"mount: {target}: mount point is busy.")
            case ["-o", "remount,ro", target]:
                self._state.mounts.pop(target, None)
            case ["-o", "ro", device, target] if device == self._state.state_device and self._path(target).is_dir():
                self._state.mounts[target] = device
            case ["--bind", source, target] if self._path(source).exists():
                self._state.mounts[target] = source
            case ["-t", "squashfs", "-o", "loop,ro", source, target] | ["-o", "loop,ro", source, target]:
                return self._mount_image(source, target)
            case _:
                return Output(status=_MOUNT_FAILED, stderr=f"mount: {arguments[-1]}: special device does not exist.")
        return Output(status=0)

    def _mount_image(self, source: str, target: str) -> Output:
        if not self._path(target).is_dir():
            return Output(status=_MOUNT_FAILED, stderr=f"mount: {target}: mount point does not exist.")
        if not self._path(source).is_file() or not self._os_of(source):
            return Output(status=_MOUNT_FAILED, stderr=f"mount: {target}: wrong fs type, bad superblock on {source}.")
        self._state.mounts[target] = source
        state_partition.unpack(self._path(source).read_text(encoding="utf-8"), self._path(target))
        return Output(status=0)

    async def _umount(self, arguments: Sequence[str], _: bytes) -> Output:
        target = arguments[-1]
        if self._state.mounts.pop(target, None) is None:
            return Output(status=_MOUNT_FAILED, stderr=f"umount: {target}: not mounted.")
        if self._path(target).is_dir() and target != ELEMENTAL_STATE:
            shutil.rmtree(self._path(target))
            self._path(target).mkdir()
        return Output(status=0)

    async def _elemental(self, arguments: Sequence[str], _: bytes) -> Output:
        # The release's elemental, mounted over the host's, knows another option.
        option, prefix = ("--system.uri", "dir:") if _ELEMENTAL in self._state.mounts else ("--directory", "")
        match list(arguments):
            case ["upgrade", "--help"]:
                return Output(status=0, stdout=f"Usage:\n  elemental upgrade [flags]\n\n      {option} string\n")
            case ["upgrade", "--logfile", log, flag, source, "--config-dir", folder, "--debug"] if flag == option:
                try:
                    return await self._simulated.upgrade(source.removeprefix(prefix), log=log, folder=folder)
                finally:
                    self._choose_next_os()
        return Output(status=1, stderr=f"Error: unknown flag: {' '.join(arguments)}")

    async def _mv(self, arguments: Sequence[str], _: bytes) -> Output:
        source, target = arguments[-2:]
        if self._state.mounts.get(STATE) != "rw":
            return Output(status=1, stderr=f"mv: cannot move '{source}': Read-only file system")
        self._path(source).replace(self._path(target))
        state_partition.refresh(self._tree)
        self._choose_next_os()
        return Output(status=0)

    async def _rm(self, arguments: Sequence[str], _: bytes) -> Output:
        for path in (argument for argument in arguments if argument.startswith("/")):
            if self._state.mounts.get(STATE) != "rw":
                return Output(status=1, stderr=f"rm: cannot remove '{path}': Read-only file system")
            HostTree(self._tree).remove(path)
        state_partition.refresh(self._tree)
        return Output(status=0)

    async def _losetup(self, arguments: Sequence[str], _: bytes) -> Output:
        if not state_partition.detach(self._tree, arguments[-1].removeprefix("/dev/")):
            return Output(status=1, stderr=f"losetup: {arguments[-1]}: detach failed: No such device or address")
        return Output(status=0)

    def _keeps_unlinked_files(self) -> bool:
        """Return True if the kernel refuses to mount the state partition read-only."""
        is_bound = WORKING in self._state.mounts and not self._path(TREE).exists()
        return is_bound or state_partition.is_unlinked(self._tree)

    def _choose_next_os(self) -> None:
        self._state.next_os = self._os_of(state_partition.next_image(self._tree))

    def _os_of(self, image: str) -> str:
        """Return the name in an image; the image of a new host names none."""
        path = self._path(image)
        return state_partition.name_in(path.read_text(encoding="utf-8")) if path.exists() else ""

    async def _change(self, arguments: Sequence[str], _: bytes) -> Output:
        """Change an image in a way that a tree of files does not show."""
        if self._state.mounts.get(STATE) != "rw":
            return Output(status=1, stderr=f"{arguments[-1]}: Read-only file system")
        return Output(status=0 if self._path(arguments[-1]).exists() else 1, stderr="")

    async def _grub2_editenv(self, arguments: Sequence[str], _: bytes) -> Output:
        name, command, *variables = arguments
        file = self._path(name)
        values = boot_assessment.values_in(file.read_bytes() if file.exists() else b"")
        if values is None:
            return Output(status=1, stderr="grub2-editenv: error: invalid environment block.")
        if command == "list":
            return Output(status=0, stdout="".join(f"{key}={value}\n" for key, value in values.items()))
        if name.startswith(STATE) and self._state.mounts.get(STATE) != "rw":
            return Output(status=1, stderr=f"grub2-editenv: error: cannot open `{name}': Read-only file system.")
        boot_assessment.write_block(file, {key: value for key, value in values.items() if key not in variables})
        self._choose_next_os()
        return Output(status=0)

    async def _blkid(self, arguments: Sequence[str], _: bytes) -> Output:
        """Find a device by its label; a cache file would be written."""
        if list(arguments) != ["-c", "/dev/null", "-L", "COS_STATE"]:
            return Output(status=4, stderr="blkid: unexpected arguments")
        device = self._state.state_device
        return Output(status=0, stdout=f"{device}\n") if device else Output(status=2)

    async def _df(self, arguments: Sequence[str], _: bytes) -> Output:
        if list(arguments) == ["--output=used", "--block-size=1M", "/"]:
            return Output(status=0, stdout=f" Used\n{self._state.running_mib:6}\n")
        return Output(status=0, stdout=f" Avail\n{self._simulated.room():6}\n")

    async def _du(self, arguments: Sequence[str], _: bytes) -> Output:
        path = arguments[-1]
        others = {ACTIVE: self._state.image_mib, PASSIVE: self._state.image_mib, TREE: 0, TRANSITION: 0}
        size = self._state.written.get(path, others.get(path, self._state.rootfs_mib))
        return Output(status=0, stdout=f"{size}\t{path}\n")

    async def _sync(self, _: Sequence[str], __: bytes) -> Output:
        return Output(status=0)

    async def _e2fsck(self, arguments: Sequence[str], _: bytes) -> Output:
        if "-f" in arguments and self._state.damage == "metadata":
            return Output(status=_UNCORRECTED, stdout="/: ********** WARNING: Filesystem still has errors **********\n")
        return Output(status=0, stdout="COS_ACTIVE: 41234/196608 files, 560000/786432 blocks\n")

    async def _rsync(self, arguments: Sequence[str], _: bytes) -> Output:
        source, target = (self._files(path.rstrip("/")) for path in arguments[-2:])
        # A hook of elemental has changed one file, whose time shows it.
        lines = [".d..t...... boot/", ">fcst...... etc/fstab", "cd+++++++++ mnt/"]
        lines += [f">f+++++++++ {path}" for path in sorted(source - target)]
        lines += [f">fc........ {path.removeprefix('!')}" for path in sorted(target) if path.startswith("!")]
        if "--delete" in arguments:
            extra = sorted(path for path in target - source if not path.startswith("!"))
            lines += [f"*deleting   {path}" for path in ("lost+found/", "oem/", "system/", *extra)]
        return Output(status=0, stdout="".join(f"{line}\n" for line in lines))

    def _files(self, folder: str) -> set[str]:
        """Return the paths in a mounted image, and in its text the files that lost their content, after a `!`."""
        root, image = self._path(folder), self._path(self._state.mounts[folder])
        found = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
        return found | {line for line in image.read_text(encoding="utf-8").splitlines() if line.startswith("!")}

    async def _systemctl(self, arguments: Sequence[str], _: bytes) -> Output:
        match list(arguments):
            case ["is-active", "--quiet", unit]:
                runs = unit in {*self._state.units, self._state.time_service}
                return Output(status=0 if runs else _INACTIVE)
        return systemctl(self._tree, self._state, arguments)

    async def _systemd_run(self, arguments: Sequence[str], _: bytes) -> Output:
        unit = arguments[0].removeprefix("--unit=")
        if unit in self._state.units:
            return Output(status=1, stderr=f"Failed to start transient service unit: Unit {unit} was already loaded.")
        self._state.units.append(unit)
        self._state.reboot_after = arguments[-3]
        return Output(status=0, stderr=f"Running as unit: {unit}")
