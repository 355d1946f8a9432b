"""The parts that the tier `host` needs beside Python, and the reason why one of them is missing.

tests/host/conftest.py skips a test for that reason; `python -m hack.real_host` prints all of them. Nothing here builds
or downloads.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hack.control_plane.assets import AssetsError, find_assets
from hack.control_plane.elemental import VERSIONS, find_elemental

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

#: The variables by which an operator names files: elemental, and the toolkit's image as an archive.
ELEMENTAL, TOOLKIT_IMAGE = "ELEMENTAL", "TOOLKIT_IMAGE"
#: Of elemental, for the stories that run with one version only.
DEFAULT_VERSION = VERSIONS[0]
#: Where `make images-debian` leaves the image.
BUILT_IMAGE = Path(__file__).parents[2] / "build/images/toolkit.tar"
#: Programs of this machine by Debian's packages.
_PROGRAMS = {
    "qemu-system-x86": ("qemu-system-x86_64",),
    "mmdebstrap": ("mmdebstrap",),
    "gdisk": ("sgdisk",),
    "e2fsprogs": ("mke2fs",),
    "dosfstools": ("mkfs.vfat",),
    "squashfs-tools": ("mksquashfs",),
    "grub-common": ("grub-mkimage",),
    "openssh-client": ("ssh", "ssh-keygen"),
    "cpio": ("cpio",),
}
#: GRUB's first sector, of the package grub-pc-bin.
_BOOT_SECTOR = "/usr/lib/grub/i386-pc/boot.img"
_ADMIN_FOLDERS = ":/usr/sbin:/sbin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine on which the parts are looked for."""

    user: int
    environ: Mapping[str, str]
    which: Callable[[str], str | None]
    exists: Callable[[Path], bool]


def this_machine() -> Machine:
    """Return the machine that runs this program."""
    path = os.environ.get("PATH", os.defpath) + _ADMIN_FOLDERS
    return Machine(
        user=os.getuid(),
        environ=os.environ,
        which=lambda program: shutil.which(program, path=path),
        exists=Path.is_file,
    )


def missing(machine: Machine, *names: str) -> str:
    """Return the first reason why one of these parts is missing; empty if all are there."""
    return next((reason for name in names if (reason := PARTS[name](machine))), "")


def elemental(environ: Mapping[str, str], version: str) -> Path:
    """Return the program that the operator has named, else the built one of this version. Raises AssetsError."""
    given = environ.get(ELEMENTAL)
    return Path(given).absolute() if given else find_elemental(version, environ)


def elemental_part(version: str) -> str:
    """Return the name of the part that is this version of elemental."""
    return f"elemental-{version}"


def report(machine: Machine) -> list[str]:
    """Return a line for each part."""
    found = {elemental_part(version): partial(elemental, machine.environ, version) for version in VERSIONS}
    lines = []
    for name in PARTS:
        reason = missing(machine, name)
        program = found.get(name)
        lines.append(f"{name}: {reason or ('found' if program is None else f'{program()} runs')}")
    return lines


def toolkit_image(environ: Mapping[str, str]) -> Path:
    """Return the archive of the toolkit's image."""
    given = environ.get(TOOLKIT_IMAGE)
    return Path(given).absolute() if given else BUILT_IMAGE


def _guest(machine: Machine) -> str:
    if machine.user != 0:
        return "the guest's root file system is made by root: run the tier as root, on Debian"
    lacking = [package for package, programs in _PROGRAMS.items() if not _all_there(machine, programs)]
    if not machine.exists(Path(_BOOT_SECTOR)):
        lacking.append("grub-pc-bin")
    if lacking:
        return f"programs are missing: run `apt-get install --no-install-recommends {' '.join(lacking)}`"
    return ""


def _all_there(machine: Machine, programs: Sequence[str]) -> bool:
    return all(machine.which(program) for program in programs)


def _control_plane(machine: Machine) -> str:
    try:
        find_assets(machine.environ)
    except AssetsError as error:
        return str(error)
    return ""


def _toolkit(machine: Machine) -> str:
    image = toolkit_image(machine.environ)
    if machine.exists(image):
        return ""
    return f"the toolkit's image is not at {image}: run `make images-debian`, or set {TOOLKIT_IMAGE} to an OCI archive"


def _elemental(machine: Machine, version: str) -> str:
    given = machine.environ.get(ELEMENTAL)
    if given and version != DEFAULT_VERSION:
        return f"{ELEMENTAL} names the program that runs"
    try:
        program = elemental(machine.environ, version)
    except AssetsError as error:
        return f"{error}, or set {ELEMENTAL} to the program of elemental 1.1.7 for x86_64"
    return "" if machine.exists(program) else f"{ELEMENTAL}={program} is not a file"


#: By name, in the order of the report.
PARTS: dict[str, Callable[[Machine], str]] = {
    "guest": _guest,
    "control-plane": _control_plane,
    "toolkit": _toolkit,
    **{elemental_part(version): partial(_elemental, version=version) for version in VERSIONS},
}
