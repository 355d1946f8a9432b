"""The list of images that the system-upgrade-controller mounts into the Pods of image-cleanup."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.release.image_lists import pack
from upgrade_manager.resources.image_list import LIST_KEY

if TYPE_CHECKING:
    from pathlib import Path


def mount_list(folder: Path, *references: str, chunk: int = 40) -> Path:
    """Mount a list in pieces, and return its place without their numbers."""
    packed = pack(references)
    for index, start in enumerate(range(0, len(packed), chunk)):
        path = folder / f"secrets/images-{index:02}" / LIST_KEY
        path.parent.mkdir(parents=True)
        path.write_bytes(packed[start : start + chunk])
    return folder / "secrets/images"
