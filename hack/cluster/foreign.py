"""The CustomResourceDefinitions of others, from hack/crds, and ours."""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from upgrade_manager.api.crd import crd_manifest

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object

_FOLDER = Path(__file__).parent.parent / "crds"


def foreign_crds() -> list[Object]:
    """What Harvester's parts install themselves; the caller's own copy."""
    return deepcopy(_read())


@cache
def _read() -> list[Object]:
    """Parsing takes longer than filling a cluster, and tests fill many."""
    documents: list[Object] = []
    for path in sorted(_FOLDER.glob("*.yaml")):
        documents += yaml.safe_load_all(path.read_text(encoding="utf-8"))
    return documents


def our_crd() -> Object:
    """The UpgradePlan's."""
    return crd_manifest()
