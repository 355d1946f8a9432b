"""The host's programs that replace its operating system and reboot it.

Images and root file systems are text files that name their operating system, as /etc/os-release does.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import yaml

from hack.host.systemd import systemctl
from upgrade_manager.toolkit.host.host_programs import Output
from upgrade_manager.toolkit.host.host_tree import HostTree

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

    from hack.host.state import HostState

_STATE = "/run/initramfs/cos-state"
_IMAGES = f"{_STATE}/cOS"
_ACTIVE, _PASSIVE, _TRANSITION = (f"{_IMAGES}/{name}.img" for name in ("active", "passive", "transition"))
_ELEMENTAL = "/usr/bin/elemental"
_OS = "PRETTY_NAME="
#: Status of mount and umount for a failed system call.
_MOUNT_FAILED = 32
#: Status of e2fsck for errors that it did not correct.
_UNCORRECTED = 4
_INACTIVE = 3


class OsPrograms:
    """Programs by name, on a tree and its state."""

    def __init__(self, tree: Path, state: HostState) -> None:
        self._tree = tree
        self._state = state
        self.handlers: dict[str, Callable[[Sequence[str], bytes], Awaitable[Output]]] = {
            "df": self._df,
            "du": self._du,
            "e2fsck": self._e2fsck,
            "elemental": self._elemental,
            "fallocate": self._change,
            "grub2-editenv": self._grub2_editenv,
            "mount": self._mount,
            "mv": self._mv,
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
            case ["-o", "remount,ro", target]:
                self._state.mounts.pop(target, None)
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
        if not self._path(source).is_file() or _OS not in self._path(source).read_text(encoding="utf-8"):
            return Output(status=_MOUNT_FAILED, stderr=f"mount: {target}: wrong fs type, bad superblock on {source}.")
        self._state.mounts[target] = source
        for name in ("etc/os-release", _ELEMENTAL.lstrip("/")):
            path = self._path(target) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self._path(source).read_text(encoding="utf-8"), encoding="utf-8")
        return Output(status=0)

    async def _umount(self, arguments: Sequence[str], _: bytes) -> Output:
        target = arguments[-1]
        if self._state.mounts.pop(target, None) is None:
            return Output(status=_MOUNT_FAILED, stderr=f"umount: {target}: not mounted.")
        if self._path(target).is_dir():
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
                return self._upgrade(source.removeprefix(prefix), log=log, folder=folder)
        return Output(status=1, stderr=f"Error: unknown flag: {' '.join(arguments)}")

    def _upgrade(self, source: str, *, log: str, folder: str) -> Output:
        self._path(log).write_text(f"Upgrade called with {source}\n", encoding="utf-8")
        config = yaml.safe_load(self._path(f"{folder}/config.yaml").read_text(encoding="utf-8"))
        if source not in self._state.mounts or not self._path("/oem/grubenv").exists():
            return Output(status=1, stderr="level=error msg=undefined upgrade source")
        if config["upgrade"]["system"]["size"] <= self._state.rootfs_mib:
            return Output(status=1, stderr="level=error msg=no space left on device")
        if self._state.damage == "elsewhere":
            return Output(status=0)
        name = (self._path(source) / "etc/os-release").read_text(encoding="utf-8")
        self._path(_TRANSITION).write_text(name, encoding="utf-8")
        self._path(_ACTIVE).replace(self._path(_PASSIVE))
        if self._state.damage == "renames":
            # It removes its image after an error.
            self._path(_TRANSITION).unlink()
            return Output(status=1, stderr="level=error msg=tune2fs failed")
        self._path(_TRANSITION).replace(self._path(_ACTIVE))
        self._state.next_os = self._os_of(_ACTIVE)
        return Output(status=0)

    async def _mv(self, arguments: Sequence[str], _: bytes) -> Output:
        source, target = arguments[-2:]
        if self._state.mounts.get(_STATE) != "rw":
            return Output(status=1, stderr=f"mv: cannot move '{source}': Read-only file system")
        self._path(source).replace(self._path(target))
        self._state.next_os = self._os_of(_ACTIVE)
        return Output(status=0)

    def _os_of(self, image: str) -> str:
        """Return the name in an image; the running system's image names none."""
        text = self._path(image).read_text(encoding="utf-8")
        return text.strip().removeprefix(_OS).strip('"') if text.startswith(_OS) else ""

    async def _change(self, arguments: Sequence[str], _: bytes) -> Output:
        """Change an image in a way that a tree of files does not show."""
        if self._state.mounts.get(_STATE) != "rw":
            return Output(status=1, stderr=f"{arguments[-1]}: Read-only file system")
        return Output(status=0 if self._path(arguments[-1]).exists() else 1, stderr="")

    async def _grub2_editenv(self, arguments: Sequence[str], _: bytes) -> Output:
        self._path(arguments[0]).parent.mkdir(parents=True, exist_ok=True)
        self._path(arguments[0]).write_text("# GRUB Environment Block\n", encoding="utf-8")
        return Output(status=0)

    async def _df(self, _: Sequence[str], __: bytes) -> Output:
        return Output(status=0, stdout=f" Avail\n{self._state.free_mib:6}\n")

    async def _du(self, arguments: Sequence[str], _: bytes) -> Output:
        size = self._state.image_mib if arguments[-1] == _ACTIVE else self._state.rootfs_mib
        return Output(status=0, stdout=f"{size}\t{arguments[-1]}\n")

    async def _sync(self, _: Sequence[str], __: bytes) -> Output:
        return Output(status=0)

    async def _e2fsck(self, arguments: Sequence[str], _: bytes) -> Output:
        if "-f" in arguments and self._state.damage == "metadata":
            return Output(status=_UNCORRECTED, stdout="/: ********** WARNING: Filesystem still has errors **********\n")
        return Output(status=0, stdout="COS_ACTIVE: 41234/196608 files, 560000/786432 blocks\n")

    async def _rsync(self, _: Sequence[str], __: bytes) -> Output:
        # A hook of elemental has changed one file, whose time shows it.
        changed = ".d..t...... boot/\n>fcst...... etc/fstab\n"
        lost = ">fc........ usr/share/p11-kit/modules/p11-kit-trust.module\n" if self._state.damage == "content" else ""
        return Output(status=0, stdout=changed + lost)

    async def _systemctl(self, arguments: Sequence[str], _: bytes) -> Output:
        match list(arguments):
            case ["is-active", "--quiet", unit]:
                return Output(status=0 if unit in self._state.units else _INACTIVE)
        return systemctl(self._tree, self._state, arguments)

    async def _systemd_run(self, arguments: Sequence[str], _: bytes) -> Output:
        unit = arguments[0].removeprefix("--unit=")
        if unit in self._state.units:
            return Output(status=1, stderr=f"Failed to start transient service unit: Unit {unit} was already loaded.")
        self._state.units.append(unit)
        self._state.reboot_after = arguments[-2]
        return Output(status=0, stderr=f"Running as unit: {unit}")
