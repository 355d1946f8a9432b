"""`python -m hack.prometheus`: unpack Debian's package into the user's cache, once; nothing is installed or started."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from hack.control_plane.assets import AssetsError
from hack.prometheus.programs import Programs, cache_folder, find

if TYPE_CHECKING:
    from collections.abc import Mapping

PACKAGE = "prometheus"
_BY_HAND = "install Prometheus, so that prometheus and promtool are on the PATH"


def main() -> int:
    """Run the program and return its exit status."""
    try:
        programs = provision(os.environ)
    except (AssetsError, OSError) as error:
        print(f"prometheus: {error}", file=sys.stderr)
        return 1
    print(f"prometheus: {programs.prometheus}, {programs.promtool}")
    return 0


def provision(environ: Mapping[str, str]) -> Programs:
    """Return the programs, which are downloaded if they are missing. Raises AssetsError or OSError."""
    with suppress(AssetsError):
        return find(environ)
    if shutil.which("apt-get", path=environ.get("PATH")) is None:
        raise AssetsError(f"this machine has no apt-get: {_BY_HAND}")
    folder = cache_folder(environ)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".prometheus-", dir=folder.parent) as name:
        package = _download(Path(name), environ)
        _run("dpkg-deb", "--extract", str(package), f"{name}/unpacked", cwd=Path(name), environ=environ)
        try:
            Path(name, "unpacked").rename(folder)
        except OSError:
            # Another process may have been faster.
            if not folder.is_dir():
                raise
    return find(environ)


def _download(folder: Path, environ: Mapping[str, str]) -> Path:
    """Return the package, after an update of apt's lists if they lack it. Raises AssetsError."""
    download = ("apt-get", "--quiet", "download", PACKAGE)
    try:
        _run(*download, cwd=folder, environ=environ)
    except AssetsError:
        if os.geteuid() != 0:
            raise
        _run("apt-get", "--quiet", "update", cwd=folder, environ=environ)
        _run(*download, cwd=folder, environ=environ)
    return next(folder.glob("*.deb"))


def _run(*command: str, cwd: Path, environ: Mapping[str, str]) -> None:
    """Run a program. Raises AssetsError with its messages."""
    ended = subprocess.run(command, cwd=cwd, env=environ, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise AssetsError(f"{' '.join(command)} failed: {ended.stderr.strip()}. Else {_BY_HAND}")


if __name__ == "__main__":
    sys.exit(main())
