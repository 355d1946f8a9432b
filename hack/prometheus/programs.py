"""Locate Prometheus and promtool; nothing here downloads."""

from __future__ import annotations

import os
import platform
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hack.control_plane.assets import AssetsError, cache_root

if TYPE_CHECKING:
    from collections.abc import Mapping

NAMES = ("prometheus", "promtool")


@dataclass(frozen=True, slots=True)
class Programs:
    """The paths of the two programs."""

    prometheus: Path
    promtool: Path


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Return the folder into which Debian's package is unpacked."""
    return cache_root(environ).parent / f"prometheus-{platform.machine()}".lower()


def find(environ: Mapping[str, str]) -> Programs:
    """Return the programs on the PATH, else those in the user's cache. Raises AssetsError."""
    unpacked = str(cache_folder(environ) / "usr/bin")
    for path in (environ.get("PATH", os.defpath), unpacked):
        found = [shutil.which(name, path=path) for name in NAMES]
        if all(found):
            return Programs(*(Path(one) for one in found if one))
    raise AssetsError("prometheus and promtool not found: run `make prometheus` (once)")
