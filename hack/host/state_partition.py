"""The state partition of a simulated host: its images are files with real inodes, one of which the host runs.

tree.py boots an image here; os_programs.py and elemental.py rename images. A hard link beside the tree keeps the inode
of the image that runs, as its loop device does: an image that is unlinked while it runs keeps its inode and its space.

GRUB and the initramfs name the image once, at boot, in /proc/cmdline and /run/cos (rancher/elemental-toolkit, v1.1.7:
30elemental-immutable-rootfs/parse-elemental-cmdline.sh). Only the kernel's file /sys/block/loopN/loop/backing_file
follows renames, and ends with "(deleted)" for an unlinked image.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from hack.host import boot_assessment

if TYPE_CHECKING:
    from pathlib import Path

STATE = "/run/initramfs/cos-state"
IMAGES = f"{STATE}/cOS"
ACTIVE, PASSIVE, TRANSITION = (f"{IMAGES}/{name}.img" for name in ("active", "passive", "transition"))
#: The folder into which elemental copies the root file system before it writes the image.
TREE = f"{IMAGES}/transition.imgTree"
#: The place at which elemental binds that folder while it works.
WORKING = "/run/cos/workingtree"
_RUNNING = "the running operating system\n"
_PREVIOUS = "the previous operating system\n"
_OS = "PRETTY_NAME="
_BLOCK = "sys/block"
#: The loop device of the root file system, and that on which elemental writes its image.
_ROOT_LOOP, _IMAGE_LOOP = "loop0", "loop7"
_LOOPS = (_ROOT_LOOP, _IMAGE_LOOP)
_DELETED = " (deleted)"
#: Files of every root file system, which the text of an image does not list.
_KNOWN = ("etc/os-release", "usr/bin/elemental")


def fill(root: Path) -> None:
    """Create the partition with the image that runs and its fallback."""
    for image, text in ((ACTIVE, _RUNNING), (PASSIVE, _PREVIOUS)):
        path = root / image.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    _run(root, ACTIVE)


def boot(root: Path, *, os_image: str) -> None:
    """Run the image of this operating system, as GRUB does: the active image, and else the fallback."""
    for folder in (_BLOCK, "run/cos"):
        shutil.rmtree(root / folder, ignore_errors=True)
    names = {image: _name_in(root / image.lstrip("/")) for image in (ACTIVE, PASSIVE)}
    image = next((one for one in names if names[one] == os_image), "")
    # An image without a name is one that ran when the host was created.
    image = image or (PASSIVE if names[ACTIVE] != "" and names[PASSIVE] is not None else ACTIVE)
    _run(root, image)
    (boot_assessment.succeed if image == ACTIVE else boot_assessment.fail)(root / STATE.lstrip("/"))


def next_image(root: Path) -> str:
    """Return the image that GRUB starts at the next boot."""
    fallback = boot_assessment.starts_fallback(root / STATE.lstrip("/")) and (root / PASSIVE.lstrip("/")).exists()
    return PASSIVE if fallback else ACTIVE


def refresh(root: Path) -> None:
    """Let the kernel's files follow renames and removals of images."""
    for loop in _LOOPS:
        held, file = _held(root, loop), root / _BLOCK / loop / "loop/backing_file"
        if not held.exists() or not file.exists():
            continue
        before = file.read_text(encoding="utf-8")
        found = next((one for one in (root / IMAGES.lstrip("/")).glob("*.img") if one.samefile(held)), None)
        old = before.strip().removesuffix(_DELETED)
        after = f"{IMAGES}/{found.name}\n" if found is not None else f"{old}{_DELETED}\n"
        if after != before:
            file.write_text(after, encoding="utf-8")


def attach(root: Path, image: str) -> None:
    """Attach the image that elemental writes to a loop device, which outlives elemental and keeps the image's space."""
    _attach(root, _IMAGE_LOOP, image, number="7:7")


def detach(root: Path, loop: str = _IMAGE_LOOP) -> bool:
    """Detach the loop device; return False if it does not exist."""
    exists = (root / _BLOCK / loop).exists()
    _held(root, loop).unlink(missing_ok=True)
    shutil.rmtree(root / _BLOCK / loop, ignore_errors=True)
    return exists


def is_attached(root: Path) -> bool:
    """Return True while the image that elemental writes, or has written in part, is attached."""
    return (root / _BLOCK / _IMAGE_LOOP).exists()


def is_unlinked(root: Path) -> bool:
    """Return True if the image that runs has no name any more: the partition cannot be made read-only then."""
    file = root / _BLOCK / _ROOT_LOOP / "loop/backing_file"
    return file.exists() and file.read_text(encoding="utf-8").strip().endswith(_DELETED)


def name_in(text: str) -> str:
    """Return the name of the operating system in an image's text; empty without a name."""
    line = next((line for line in text.splitlines() if line.startswith(_OS)), "")
    return line.removeprefix(_OS).strip('"')


def pack(tree: Path) -> str:
    """Return the text of an image of this tree: the operating system's name, and the paths of other files."""
    release = (tree / "etc/os-release").read_text(encoding="utf-8")
    paths = (path.relative_to(tree) for path in sorted(tree.rglob("*")) if path.is_file())
    return release + "".join(f"/{path}\n" for path in paths if str(path) not in _KNOWN)


def unpack(text: str, tree: Path) -> None:
    """Add the files of an image to a tree; files that the tree has and the image lacks stay."""
    lines = text.splitlines(keepends=True)
    files = dict.fromkeys((line.strip()[1:] for line in lines if line.startswith("/")), "program\n")
    files["usr/bin/elemental"] = "program\n"
    files["etc/os-release"] = "".join(line for line in lines if not line.startswith("/"))
    for name, content in files.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")


def _name_in(image: Path) -> str | None:
    return name_in(image.read_text(encoding="utf-8")) if image.exists() else None


def _run(root: Path, image: str) -> None:
    """Make the image the root file system of the running system."""
    _attach(root, _ROOT_LOOP, image, number="7:0")
    _held(root, _IMAGE_LOOP).unlink(missing_ok=True)
    name = image.rpartition("/")[2].removesuffix(".img")
    for path, text in {
        "proc/cmdline": f"root=LABEL=COS_STATE cos-img/filename=/cOS/{name}.img rd.cos.oemlabel=COS_OEM\n",
        "proc/1/mountinfo": f"24 1 7:0 / / ro,relatime shared:1 - ext2 /dev/{_ROOT_LOOP} ro\n",
        f"run/cos/{name}_mode": "1",
    }.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def _attach(root: Path, loop: str, image: str, *, number: str) -> None:
    held = _held(root, loop)
    held.unlink(missing_ok=True)
    os.link(root / image.lstrip("/"), held)
    folder = root / _BLOCK / loop / "loop"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "backing_file").write_text(f"{image}\n", encoding="utf-8")
    (folder.parent / "dev").write_text(f"{number}\n", encoding="utf-8")


def _held(root: Path, loop: str) -> Path:
    """Return the hard link that keeps the inode of a loop device's file."""
    return root.with_name(f"{root.name}.{loop}")
