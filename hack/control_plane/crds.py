"""The CustomResourceDefinitions that a cluster on the real API server gets from other projects."""

from __future__ import annotations

import json
from copy import deepcopy
from functools import cache
from typing import TYPE_CHECKING

from hack.cluster.foreign import foreign_crds
from hack.control_plane.cache import is_whole
from hack.control_plane.errors import AssetsError

if TYPE_CHECKING:
    from pathlib import Path

    from hack.control_plane.assets import Assets
    from upgrade_manager.kube.objects import Object


def real_crds(assets: Assets) -> list[Object]:
    """A definition for each kind in hack/crds: its project's own where that is to be had, else ours. The caller's copy.

    Raises AssetsError where the projects' definitions were not provisioned.
    """
    if not is_whole(assets.crds):
        raise AssetsError(f"no CustomResourceDefinitions in {assets.crds}: `make real-kube` fetches them")
    return deepcopy(_read(assets.crds))


@cache
def _read(folder: Path) -> list[Object]:
    return [_real(folder, ours["metadata"]["name"]) or ours for ours in foreign_crds()]


def _real(folder: Path, name: str) -> Object | None:
    path = folder / f"{name}.json"
    if not path.exists():
        return None
    found: Object = json.loads(path.read_text(encoding="utf-8"))
    return found
