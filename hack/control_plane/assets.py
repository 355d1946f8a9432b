"""Locate the programs of the real control plane; nothing here builds or downloads."""

from __future__ import annotations

import hashlib
import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

#: Each program's Go module, by its folder in GO_FOLDER.
PROGRAMS = {
    "etcd": "etcd",
    "kube-apiserver": "kubernetes",
    "kube-controller-manager": "kubernetes",
    "kube-scheduler": "kubernetes",
    "kubectl": "kubernetes",
    "system-upgrade-controller": "system-upgrade-controller",
}
#: Set by users of envtest.
VARIABLE = "KUBEBUILDER_ASSETS"
GO_FOLDER = Path(__file__).parent / "go"
_BINARY_PINS = [
    *(GO_FOLDER / module / name for module in dict.fromkeys(PROGRAMS.values()) for name in ("go.mod", "go.sum")),
    GO_FOLDER / "system-upgrade-controller" / "main.go",
]
#: The program that judges objects as other tools do, which `make real-kube` builds, too.
PLAN_HEALTH = "plan-health"
#: Further programs, each of a Go module in the folder of its name, and the program's package within the module. A dot
#: stands for a program of our own, in that folder.
TOOLS = {"helm": "/cmd/helm", "kubeconform": "/cmd/kubeconform", "helm-controller": "", PLAN_HEALTH: "."}
_CRD_PINS = [
    GO_FOLDER / "crds" / "go.sum",
    Path(__file__).with_name("crd_extraction.py"),
    Path(__file__).parents[1] / "crds" / "kubevirt.yaml",
]


class AssetsError(Exception):
    """The programs are missing or cannot be built; one sentence that includes the remedy."""


@dataclass(frozen=True, slots=True)
class Assets:
    """The folder with the programs, and the one with other projects' CustomResourceDefinitions as JSON files."""

    folder: Path
    crds: Path


def cache_root(environ: Mapping[str, str]) -> Path:
    """Return the folder below which everything is built."""
    return Path.home() / ".cache" / environ.get("XDG_CACHE_HOME", "") / "harvester-upgrade-manager" / "kube"


def expected_assets(environ: Mapping[str, str]) -> Assets:
    """Return where the programs and the CRDs of the pinned versions belong, whether or not they are there."""
    root = cache_root(environ)
    given = environ.get(VARIABLE)
    programs = Path(given).absolute() if given else root / f"programs-{_system()}-{_digest(_BINARY_PINS)}"
    return Assets(programs, root / f"crds-{_digest(_CRD_PINS)}")


def find_assets(environ: Mapping[str, str]) -> Assets:
    """Return the programs in $KUBEBUILDER_ASSETS, else those in the user's cache. Raises AssetsError.

    With $KUBEBUILDER_ASSETS, the CRDs may be missing: a control plane starts without them.
    """
    assets = expected_assets(environ)
    missing = [name for name in PROGRAMS if not os.access(assets.folder / name, os.X_OK)]
    if missing and environ.get(VARIABLE):
        raise AssetsError(
            f"{VARIABLE}={assets.folder} lacks {', '.join(missing)}: add what is missing (envtest has only etcd, "
            f"kube-apiserver and kubectl), or unset {VARIABLE} and run `make real-kube`"
        )
    if missing or not (assets.crds.is_dir() or environ.get(VARIABLE)):
        raise AssetsError("the real control plane is not built: run `make real-kube` (once, about 6 minutes)")
    return assets


def expected_tool(name: str, environ: Mapping[str, str]) -> Path:
    """Return where the pinned one of TOOLS belongs, whether or not it is there."""
    return pinned_folder(name, sorted((GO_FOLDER / name).iterdir()), environ) / name


def find_tool(name: str, environ: Mapping[str, str]) -> Path:
    """Return the pinned one of TOOLS in the user's cache. Raises AssetsError."""
    tool = expected_tool(name, environ)
    if not os.access(tool, os.X_OK):
        target = "real-kube" if name == PLAN_HEALTH else name
        raise AssetsError(f"{name} is not built: run `make {target}` (once, at most 2 minutes)")
    return tool


def pinned_folder(name: str, pins: Iterable[Path], environ: Mapping[str, str]) -> Path:
    """Return the folder of what these files pin, for this machine."""
    return cache_root(environ) / f"{name}-{_system()}-{_digest(pins)}"


def _system() -> str:
    return f"{platform.system()}-{platform.machine()}".lower()


def _digest(pins: Iterable[Path]) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in pins)).hexdigest()[:12]
