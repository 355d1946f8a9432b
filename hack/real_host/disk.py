"""The guest's disk as a sparse file: table, boot loader, and file systems that are filled without mounting them.

guest.py makes one for all tests, and copies it for each.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from hack.real_host import boot_sector, grub, layout

if TYPE_CHECKING:
    from hack.real_host.layout import Partition

_GRUB = Path("/usr/lib/grub/i386-pc")
#: MiB of an image of the root file system.
_IMAGE_MIB = 1536


def make_image(root: Path, image: Path, *, label: str) -> None:
    """Make the image of a root file system, as elemental does: an ext2 file system without a table."""
    image.unlink(missing_ok=True)
    _run("mke2fs", "-q", "-t", "ext2", "-L", label, "-d", str(root), str(image), f"{_IMAGE_MIB}M")


def make_disk(disk: Path, root: Path, persistent: Path) -> None:
    """Make a disk whose active and passive image are this root file system."""
    with disk.open("wb") as file:
        file.truncate(layout.DISK_SIZE)
    _run("sgdisk", *layout.table_arguments(), str(disk))
    with tempfile.TemporaryDirectory(dir=disk.parent) as name:
        work = Path(name)
        _install_grub(disk, work)
        for folder in ("oem", "recovery", "state/cOS", "state/grub2"):
            (work / folder).mkdir(parents=True)
        (work / "oem/grubenv").write_bytes(grub.environment())
        (work / "state" / grub.ASSESSMENT).write_bytes(grub.environment())
        (work / "state/grub2/grub.cfg").write_text(grub.CONFIG, encoding="utf-8")
        make_image(root, work / "state/cOS/active.img", label="COS_ACTIVE")
        copy_sparse(work / "state/cOS/active.img", work / "state/cOS/passive.img")
        sources = (work / "oem", work / "recovery", work / "state", persistent)
        for partition, source in zip(layout.PARTITIONS[1:-1], sources, strict=True):
            _fill(disk, partition, source)
    # FAT16, because mkfs.vfat chooses by the size of the whole file.
    efi = ("-F", "16", "-n", layout.EFI_LABEL, "--offset", str(layout.EFI.sector))
    _run("mkfs.vfat", *efi, str(disk), str(layout.EFI.mib * 1024))


def copy_sparse(source: Path, target: Path) -> None:
    """Copy a file without its holes."""
    _run("cp", "--sparse=always", str(source), str(target))


def _install_grub(disk: Path, work: Path) -> None:
    (work / "embedded.cfg").write_text(grub.EMBEDDED, encoding="utf-8")
    core, options = work / "core.img", ("--format=i386-pc", "--prefix=(hd0,gpt4)/grub2")
    _run("grub-mkimage", *options, f"--config={work}/embedded.cfg", f"--output={core}", *grub.MODULES)
    sector, limit = layout.BIOS.sector, layout.BIOS.mib * 1024 * 1024
    with disk.open("r+b") as file:
        first = file.read(layout.SECTOR)
        file.seek(0)
        file.write(boot_sector.boot_sector(first, (_GRUB / "boot.img").read_bytes(), core_sector=sector))
        file.seek(layout.BIOS.offset)
        file.write(boot_sector.placed_core(core.read_bytes(), sector=sector, limit=limit))


def _fill(disk: Path, partition: Partition, source: Path) -> None:
    """Make the partition's file system with the files of a folder."""
    options = ("-q", "-F", "-t", "ext4", "-L", partition.label, "-d", str(source))
    extended = f"offset={partition.offset},lazy_itable_init=1"
    _run("mke2fs", *options, "-E", extended, str(disk), f"{partition.mib}M")


def _run(*argv: str) -> None:
    found = shutil.which(argv[0], path=f"{os.environ['PATH']}:/usr/sbin:/sbin") or argv[0]
    subprocess.run([found, *argv[1:]], check=True, stdout=subprocess.DEVNULL)
