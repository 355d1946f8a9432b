"""The user's cache: one folder for each thing that was provisioned, either whole or not there.

A folder is filled under another name, written to the disk, and renamed at the end. It holds a list of its files with
their sizes, so that one from which something was deleted afterwards is not taken for whole.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from hack.kube.errors import AssetsError

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The list of a whole folder's files.
MANIFEST = "complete.json"


def cache_root(environ: Mapping[str, str]) -> Path:
    """Where everything provisioned lives, after the XDG base directory specification: relative paths are ignored."""
    for name, below in (("XDG_CACHE_HOME", "."), ("HOME", ".cache")):
        base = Path(environ.get(name, ""))
        if base.is_absolute():
            return base / below / "harvester-upgrade-manager" / "kube"
    raise AssetsError(
        "there is no cache folder, because HOME is not set: set HOME, or XDG_CACHE_HOME to a folder for it"
    )


def is_whole(folder: Path) -> bool:
    """Whether the folder was finished and still has all its files, full length."""
    try:
        sizes = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        return all((folder / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError, AttributeError):
        return False
