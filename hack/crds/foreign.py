"""The CustomResourceDefinitions of other projects, from hack/crds, and the UpgradePlan's.

All callers of a process share them and must not change them.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from hack.yaml_documents import documents
from upgrade_manager.api.crd import crd_manifest

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object

_FOLDER = Path(__file__).parent


def foreign_crds() -> tuple[Object, ...]:
    """Return the definitions that Harvester's components install."""
    return _parsed(_FOLDER)


def service_crds() -> tuple[Object, ...]:
    """Return further definitions, of a scenario with services."""
    return _parsed(_FOLDER / "services")


def operator_crds() -> tuple[Object, ...]:
    """Return further definitions, of a scenario with what operators repair."""
    return _parsed(_FOLDER / "operators")


@cache
def our_crd() -> Object:
    """Return the UpgradePlan's definition."""
    return crd_manifest()


@cache
def _parsed(folder: Path) -> tuple[Object, ...]:
    """Parse the files once: parsing takes longer than creating a cluster's objects."""
    found: list[Object] = []
    for path in sorted(folder.glob("*.yaml")):
        found += documents(path.read_text(encoding="utf-8"))
    return tuple(found)
