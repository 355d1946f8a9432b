"""Go's own caches, of modules and of what is compiled: the user's where there are any, else in our cache folder."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from hack.control_plane.errors import ProvisionError
from hack.control_plane.modules import shortened

if TYPE_CHECKING:
    from hack.control_plane.toolchain import Go

_NAMES = ("GOCACHE", "GOMODCACHE")


def go_caches(go: Go, *, root: Path) -> dict[str, str]:
    """Folders that can be written, by the name of Go's variable.

    The user's own are used as they are and stay after the build, as after any other. Go has none where HOME is missing
    or cannot be written.
    """
    finished = go.run("env", "-json", *_NAMES, cwd=root)
    try:
        named = json.loads(finished.output)
    except ValueError as error:
        raise ProvisionError(f"{go.program} does not work ({shortened(finished.errors)}): install Go anew") from error
    return {name: str(_first_writable(named.get(name, ""), root / name.lower())) for name in _NAMES}


def _first_writable(named: str, ours: Path) -> Path:
    folder = Path(named)
    return folder if folder.is_absolute() and _writable(folder) else ours


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True
