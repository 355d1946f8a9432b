"""Which versions are taken, read from the go.mod and go.sum files in hack/control_plane/go, and the cache keys.

An update is one line there. Whatever decides what ends up in a cache folder is part of that folder's name, so that one
of another version is never taken for it.
"""

from __future__ import annotations

import hashlib
import platform
import re
from dataclasses import dataclass
from pathlib import Path

GO_FOLDER = Path(__file__).parent / "go"
_HERE = Path(__file__).parent
#: Raised when the way of building changes, so that what was built before is not used any more.
_RECIPE = 1
_ARCHITECTURES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
#: What turns a module's files into definitions; when it changes, they are read anew, which takes seconds.
_EXTRACTION = ("definitions.py", "kubevirt.py", "charts.py")


@dataclass(frozen=True, slots=True)
class Module:
    """A Go module of a version, and the h1 sum of its content where only that is pinned."""

    path: str
    version: str
    sum: str = ""


def required(name: str, *, folder: Path = GO_FOLDER) -> Module:
    """The one module that hack/control_plane/go/NAME/go.mod requires."""
    found = re.search(r"^require (\S+) (\S+)$", _text(folder / name / "go.mod"), re.MULTILINE)
    if found is None:
        raise ValueError(f"{folder / name / 'go.mod'} has no line 'require MODULE VERSION'")
    return Module(found[1], found[2])


def language(name: str, *, folder: Path = GO_FOLDER) -> tuple[int, ...]:
    """The oldest Go that hack/control_plane/go/NAME/go.mod can be built with, such as (1, 25, 0)."""
    found = re.search(r"^go ([\d.]+)$", _text(folder / name / "go.mod"), re.MULTILINE)
    if found is None:
        raise ValueError(f"{folder / name / 'go.mod'} has no line 'go VERSION'")
    return tuple(int(part) for part in found[1].split("."))


def downloaded(*, folder: Path = GO_FOLDER) -> tuple[Module, ...]:
    """The modules that are only read, never compiled: each a line of hack/control_plane/go/crds/go.sum."""
    lines = _text(folder / "crds" / "go.sum").splitlines()
    return tuple(Module(*line.split()) for line in lines if line.strip())


def machine() -> tuple[str, str]:
    """This machine in Go's words, GOOS and GOARCH; an architecture unknown to us keeps its name."""
    architecture = platform.machine().lower()
    return platform.system().lower(), _ARCHITECTURES.get(architecture, architecture)


def binaries_key() -> str:
    """The name of the cache folder with the programs."""
    files = [GO_FOLDER / name / kind for name in ("kubernetes", "etcd") for kind in ("go.mod", "go.sum")]
    parts = [f"recipe {_RECIPE}".encode(), *(path.read_bytes() for path in files)]
    versions = f"kubernetes-{required('kubernetes').version}-etcd-{required('etcd').version}"
    return f"{versions}-{'-'.join(machine())}-{_digest(parts)}"


def definitions_key() -> str:
    """The name of the cache folder with the CustomResourceDefinitions."""
    files = [GO_FOLDER / "crds" / "go.sum", *(_HERE / name for name in _EXTRACTION)]
    return f"crds-{_digest([path.read_bytes() for path in files if path.exists()])}"


def _digest(parts: list[bytes]) -> str:
    whole = hashlib.sha256()
    for part in parts:
        whole.update(hashlib.sha256(part).digest())
    return whole.hexdigest()[:12]


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")
