"""The CustomResourceDefinitions of other projects, from hack/crds, and the UpgradePlan's."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from upgrade_manager.api.crd import crd_manifest

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object

_FOLDER = Path(__file__).parent


def foreign_crds() -> list[Object]:
    """Return a copy of the definitions that Harvester's components install."""
    copy: list[Object] = json.loads(_parsed(_FOLDER))
    return copy


def service_crds() -> list[Object]:
    """Return a copy of further definitions, of a scenario with services."""
    copy: list[Object] = json.loads(_parsed(_FOLDER / "services"))
    return copy


def operator_crds() -> list[Object]:
    """Return a copy of further definitions, of a scenario with what operators repair."""
    copy: list[Object] = json.loads(_parsed(_FOLDER / "operators"))
    return copy


def our_crd() -> Object:
    """Return a copy of the UpgradePlan's definition."""
    copy: Object = json.loads(_upgrade_plan())
    return copy


@cache
def _parsed(folder: Path) -> str:
    """Parse the files once: parsing takes longer than creating a cluster's objects."""
    documents: list[Object] = []
    for path in sorted(folder.glob("*.yaml")):
        documents += yaml.safe_load_all(path.read_text(encoding="utf-8"))
    return json.dumps(documents)


@cache
def _upgrade_plan() -> str:
    return json.dumps(crd_manifest())
