"""The user's cache: one folder for each thing that was provisioned, either whole or not there.

A folder is filled under another name, written to the disk, and renamed at the end. It holds a list of its files with
their sizes, so that one from which something was deleted afterwards is not taken for whole.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from hack.control_plane.errors import AssetsError, ProvisionError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: The list of a whole folder's files.
MANIFEST = "complete.json"
#: What an unfinished folder's name begins with.
_PARTIAL = ".partial-"


def cache_root(environ: Mapping[str, str]) -> Path:
    """Where everything provisioned lives, after the XDG base directory specification: relative paths are ignored."""
    for name, below in (("XDG_CACHE_HOME", "."), ("HOME", ".cache")):
        base = Path(environ.get(name, ""))
        if base.is_absolute():
            return base / below / "harvester-upgrade-manager" / "kube"
    raise AssetsError("HOME is not set, so there is no cache folder: set HOME, or XDG_CACHE_HOME to a folder for it")


def is_whole(folder: Path) -> bool:
    """Whether the folder was finished and still has all its files, full length."""
    try:
        sizes = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        return all((folder / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError, AttributeError):
        return False


def make_root(root: Path) -> None:
    """Make the cache's own folder and see that it can be written."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=root).close()
    except OSError as error:
        raise ProvisionError(
            f"the cache folder {root} cannot be written ({error.strerror}): "
            "make it writable, or set XDG_CACHE_HOME to a folder that is"
        ) from error


def sweep(root: Path) -> None:
    """Remove what interrupted builds left; only for who holds the lock on the cache."""
    for leftover in root.glob(f"{_PARTIAL}*"):
        shutil.rmtree(leftover, ignore_errors=True)


@contextmanager
def workplace(root: Path) -> Iterator[Path]:
    """A folder on the cache's disk for the time of a build, with the folder `out` in it; gone afterwards."""
    work = Path(tempfile.mkdtemp(prefix=_PARTIAL, dir=root))
    try:
        (work / "out").mkdir()
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


def publish(out: Path, folder: Path) -> None:
    """Make the filled folder `out` the cache's `folder`, at once and for good; `folder` must not be whole."""
    files = [path for path in sorted(out.rglob("*")) if path.is_file()]
    manifest = out / MANIFEST
    manifest.write_text(json.dumps({str(path.relative_to(out)): path.stat().st_size for path in files}))
    # A rename must not get to the disk before the content does.
    os.sync()
    shutil.rmtree(folder, ignore_errors=True)
    out.rename(folder)
    os.sync()
