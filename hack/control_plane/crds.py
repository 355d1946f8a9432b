"""The CustomResourceDefinitions of other projects in a cluster on the real API server."""

from __future__ import annotations

import json
from copy import deepcopy
from functools import cache
from typing import TYPE_CHECKING, Any

from hack.cluster.foreign import foreign_crds
from hack.control_plane.assets import AssetsError

if TYPE_CHECKING:
    from pathlib import Path

    from hack.control_plane.assets import Assets
    from upgrade_manager.kube.objects import Object


def real_crds(assets: Assets) -> list[Object]:
    """Return a copy of the definition of each kind in hack/crds, the project's own if there is one.

    Raises AssetsError when the projects' definitions were not built.
    """
    if not assets.crds.is_dir():
        raise AssetsError(f"CustomResourceDefinitions not found in {assets.crds}: run `make real-kube`")
    return deepcopy(_read(assets.crds))


@cache
def _read(folder: Path) -> list[Object]:
    found = []
    for crd in foreign_crds():
        path = folder / f"{crd['metadata']['name']}.json"
        real: Any = json.loads(path.read_text(encoding="utf-8")) if path.exists() else crd
        found.append(real)
    return found
