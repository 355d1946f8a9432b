"""Finding the programs of the real control plane; nothing here builds or downloads."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hack.control_plane.cache import cache_root, is_whole
from hack.control_plane.errors import AssetsError
from hack.control_plane.pins import binaries_key, definitions_key

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["PROGRAMS", "Assets", "AssetsError", "find_assets"]

#: What must be in the folder.
PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl")
#: What envtest's users have set already.
VARIABLE = "KUBEBUILDER_ASSETS"


@dataclass(frozen=True, slots=True)
class Assets:
    """The folder with the four programs, and the one with other projects' CustomResourceDefinitions as YAML files.

    Whether `crds` is there is for its reader to see (hack.control_plane.crds): a control plane starts without.
    """

    folder: Path
    crds: Path

    @property
    def etcd(self) -> Path:
        """The store."""
        return self.folder / "etcd"

    @property
    def kube_apiserver(self) -> Path:
        """The API server."""
        return self.folder / "kube-apiserver"

    @property
    def kube_controller_manager(self) -> Path:
        """The controllers of Deployments, Jobs and so on."""
        return self.folder / "kube-controller-manager"

    @property
    def kubectl(self) -> Path:
        """The cluster's own command line."""
        return self.folder / "kubectl"


def find_assets(environ: Mapping[str, str]) -> Assets:
    """Where the programs are: in $KUBEBUILDER_ASSETS where that is set and not empty, else in the user's cache.

    Takes about a millisecond. Raises AssetsError, whose one sentence names what is missing and the remedy.
    """
    root = cache_root(environ)
    crds = root / definitions_key()
    if environ.get(VARIABLE):
        return Assets(_given(Path(environ[VARIABLE])), crds)
    folder = root / binaries_key()
    if not is_whole(folder) or not is_whole(crds):
        raise AssetsError(f"no real control plane in {folder}: `make real-kube` builds it, once, in about 5 minutes")
    return Assets(folder, crds)


def _given(folder: Path) -> Path:
    """The user's own folder, if it has all; envtest's sets lack the controller manager."""
    missing = [name for name in PROGRAMS if not _runnable(folder / name)]
    if missing:
        raise AssetsError(
            f"{VARIABLE} is {folder}, which has no {', no '.join(missing)} that can be started"
            f"{' (envtest brings none)' if missing == ['kube-controller-manager'] else ''}: "
            f"put {'it' if len(missing) == 1 else 'them'} there, or unset {VARIABLE} and `make real-kube` builds all"
        )
    return folder.absolute()


def _runnable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
