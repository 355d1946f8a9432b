"""elemental, which writes a node's operating system: the two versions that are Go modules, and where they belong.

`python -m hack.control_plane elemental` builds them for the tier `host` (docs/real-host.md). Both ask for a module that
registries no longer have, github.com/tredoe/osutil/v2, and use one folder of it: hashes of passwords. Version 1 of
osutil has the same folder, under another path, so that it is copied when elemental is built.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hack.control_plane.assets import GO_FOLDER, AssetsError, pinned_folder

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

#: Each of the Go module in the folder `elemental-VERSION`.
VERSIONS = ("1.3.0", "0.3.1")
#: The module whose folder is copied, in the folder of the same name; and its path in each of both modules.
OSUTIL = "osutil"
MODULE = "github.com/tredoe/osutil"
_FOUND, _WANTED = "user/crypt", "userutil/crypt"


def expected_elemental(version: str, environ: Mapping[str, str]) -> Path:
    """Return where the program of a version belongs, whether or not it is there."""
    folders = (f"elemental-{version}", OSUTIL)
    pins = [GO_FOLDER / folder / name for folder in folders for name in ("go.mod", "go.sum")]
    return pinned_folder(f"elemental-{version}", [*pins, Path(__file__)], environ) / "elemental"


def find_elemental(version: str, environ: Mapping[str, str]) -> Path:
    """Return the program of a version in the user's cache. Raises AssetsError."""
    program = expected_elemental(version, environ)
    if not program.exists():
        raise AssetsError(f"elemental {version} is not built: run `make elemental` (once, about 2 minutes)")
    return program


def osutil_version() -> str:
    """Return the version of osutil that is copied."""
    return (GO_FOLDER / OSUTIL / "go.sum").read_text(encoding="utf-8").split()[1]


def write_osutil(modules: str | os.PathLike[str], target: Path) -> None:
    """Make the module that elemental asks for, of the one in a folder of Go modules."""
    source = Path(modules, f"{MODULE}@{osutil_version()}", _FOUND)
    for file in source.rglob("*.go"):
        if file.name.endswith("_test.go"):
            continue
        copy = target / _WANTED / file.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        text = file.read_text(encoding="utf-8").replace(f'"{MODULE}/{_FOUND}', f'"{MODULE}/v2/{_WANTED}')
        copy.write_text(text, encoding="utf-8")
    (target / "go.mod").write_text(f"module {MODULE}/v2\n\ngo 1.17\n", encoding="utf-8")
