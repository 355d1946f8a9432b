"""The disk from which each test's guest begins, made once, and the guest of one test.

tests/host/conftest.py has both as fixtures.
"""

from __future__ import annotations

import os
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hack.real_host import grub, root_tree
from hack.real_host.disk import copy_sparse, make_disk
from hack.real_host.machine import Machine

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

STATE = "/run/initramfs/cos-state"
ACTIVE, PASSIVE = f"{STATE}/cOS/active.img", f"{STATE}/cOS/passive.img"


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A disk, the tree of its images, and the key of its root user."""

    disk: Path
    root: Path
    key: Path


def make_template(folder: Path, *, elemental: Path | None, kubectl: Path | None) -> Template:
    """Make the disk in an empty folder."""
    key = folder / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    public = key.with_suffix(".pub").read_text(encoding="utf-8")
    root = root_tree.make_root(folder, environ=os.environ, elemental=elemental, public_key=public)
    persistent = root_tree.make_persistent(root, folder, kubectl=kubectl)
    disk = folder / "disk"
    make_disk(disk, root, persistent)
    return Template(disk=disk, root=root, key=key)


@contextmanager
def guest(template: Template, folder: Path) -> Iterator[Machine]:
    """Boot a copy of the disk. The copy is removed at the end; the console stays."""
    disk = folder / "disk"
    folder.mkdir(parents=True, exist_ok=True)
    copy_sparse(template.disk, disk)
    with booted(disk, folder, key=template.key) as machine:
        yield machine


@contextmanager
def booted(disk: Path, folder: Path, *, key: Path) -> Iterator[Machine]:
    """Boot a disk, such as the copy that a power cut left, and remove it at the end."""
    try:
        with Machine(disk, folder, key=key) as machine:
            yield machine
    finally:
        disk.unlink()


def running_image(machine: Machine) -> str:
    """Return the file of the root file system's loop device, as the kernel names it."""
    return machine.call("cat", "/sys/block/loop0/loop/backing_file").strip()


def os_name(machine: Machine) -> str:
    """Return the name of the operating system that runs."""
    return machine.call("sh", "-c", '. /etc/os-release && echo "$PRETTY_NAME"').strip()


def names(machine: Machine) -> set[str]:
    """Return the names of the images, and of what an upgrade has left beside them."""
    return set(machine.call("ls", f"{STATE}/cOS").split())


def remount(machine: Machine, mode: str) -> None:
    """Mount the state partition `rw` or `ro`."""
    machine.call("mount", "-o", f"remount,{mode}", STATE)


def damage_active(machine: Machine) -> None:
    """Let the next boot be the first one of an upgrade whose image lacks /sbin/init; the node keeps running."""
    remount(machine, "rw")
    copy = f"cp --sparse=always {ACTIVE} {STATE}/cOS/damaged.img"
    remove = f"debugfs -w -R 'rm /usr/sbin/init' {STATE}/cOS/damaged.img"
    machine.call("sh", "-c", f"{copy} && {remove} && mv {ACTIVE} {PASSIVE} && mv {STATE}/cOS/damaged.img {ACTIVE}")
    machine.call("grub2-editenv", f"{STATE}/{grub.ASSESSMENT}", "set", f"{grub.ASSESSED}=yes")
    machine.call("sync")
