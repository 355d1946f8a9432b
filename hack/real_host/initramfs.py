"""The guest's initramfs: busybox, the modules for its disk, and a script that mounts the image and starts it.

It takes the place of elemental's initramfs, which is in no package. It does what the toolkit can see of that: the state
partition is mounted read-only below /run/initramfs, the image that GRUB names is the root file system by a loop device,
and /run/cos has a file for its name. As there, an image without /sbin/init waits for a reset.
"""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_BUSYBOX = "bin/busybox"
_MODULES = ("virtio_pci", "virtio_blk", "loop")
_SCRIPT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t tmpfs -o mode=0755 tmpfs /run
while read -r module; do
    insmod "/modules/$module"
done </modules/order
image=$(sed -n 's/.*cos-img\\/filename=\\([^ ]*\\).*/\\1/p' /proc/cmdline)
mkdir -p /run/initramfs/cos-state /run/cos /root
until state=$(findfs LABEL=COS_STATE); do
    sleep 1
done
mount -t ext4 -o ro "$state" /run/initramfs/cos-state
mount -t ext4 -o ro,loop "/run/initramfs/cos-state$image" /root
name=${image##*/}
echo 1 >"/run/cos/${name%.img}_mode"
if [ ! -e /root/sbin/init ] && [ ! -L /root/sbin/init ]; then
    echo "$image has no /sbin/init: waiting for a reset"
    while true; do
        sleep 3600
    done
fi
umount /proc /sys
mount --move /dev /root/dev
mount --move /run /root/run
exec switch_root /root /sbin/init
"""


def write_initramfs(root: Path, folder: Path) -> None:
    """Write boot/initrd of a root file system, by files in an empty folder."""
    for name in ("bin", "dev", "proc", "sys", "run", "root", "modules"):
        (folder / name).mkdir(parents=True)
    shutil.copy(root / _BUSYBOX, folder / _BUSYBOX)
    modules = _needed_modules(root)
    for module in modules:
        shutil.copy(module, folder / "modules" / module.name)
    (folder / "modules/order").write_text("".join(f"{module.name}\n" for module in modules), encoding="utf-8")
    init = folder / "init"
    init.write_text(_SCRIPT, encoding="utf-8")
    init.chmod(0o755)
    archive = "find . | cpio --quiet --create --format=newc | gzip -1"
    with (root / "boot/initrd").open("wb") as file:
        subprocess.run(["sh", "-c", archive], cwd=folder, stdout=file, check=True)


def _needed_modules(root: Path) -> list[Path]:
    """Return the modules in the order of their dependencies."""
    version = next((root / "lib/modules").iterdir()).name
    paths: dict[str, None] = {}
    for name in _MODULES:
        argv = ["chroot", str(root), "/sbin/modprobe", "--set-version", version, "--show-depends", name]
        shown = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
        paths |= {line.split()[1]: None for line in shown.splitlines() if line.startswith("insmod ")}
    return [root / path.lstrip("/") for path in paths]
