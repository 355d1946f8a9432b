"""Other projects' definitions: read from their modules, and compared with the small ones in hack/crds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hack.control_plane.assets import Assets
from hack.control_plane.backend import real_crds
from hack.crds.foreign import foreign_crds
from tests.support import tiers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from upgrade_manager.kube.objects import Object

#: Facets that must be equal where hack/crds models a field; descriptions, formats and limits may differ.
FACETS = ("type", "enum", "nullable", "x-kubernetes-int-or-string", "x-kubernetes-list-type")
NAMES = [crd["metadata"]["name"] for crd in foreign_crds()]


def test_kind_has_its_project_definition_or_the_small_one(tmp_path: Path) -> None:
    name = "settings.harvesterhci.io"
    for each in (name, "keypairs.harvesterhci.io"):
        (tmp_path / f"{each}.json").write_text(json.dumps({"metadata": {"name": each}, "spec": {"real": True}}))
    assets = Assets(tmp_path, tmp_path)
    for crd in real_crds(assets):
        crd["spec"].clear()
    found = {crd["metadata"]["name"]: crd for crd in real_crds(assets)}
    small = {crd["metadata"]["name"]: crd for crd in foreign_crds()}
    assert found == {**small, name: {"metadata": {"name": name}, "spec": {"real": True}}}


def differences(small: Any, real: Any, path: str = "") -> Iterator[str]:
    """Yield what `small` models differently, and what only one of the two requires."""
    is_open = small.get("x-kubernetes-preserve-unknown-fields")
    if real.get("x-kubernetes-preserve-unknown-fields") and "properties" not in real:
        return
    for facet in FACETS:
        if _set(small.get(facet)) != _set(real.get(facet)) and not is_open:
            yield f"{path or '.'}: {facet} {small.get(facet)} is {real.get(facet)}"
    known = small.get("properties") or {}
    if known or not is_open:
        required = (set(small.get("required") or ()), set(real.get("required") or ()))
        yield from (f"{path}.{name}: required by one alone" for name in sorted(required[0] ^ required[1]))
    for name, schema in known.items():
        if name not in (real.get("properties") or {}):
            yield f"{path}.{name}: unknown"
        else:
            yield from differences(schema, real["properties"][name], f"{path}.{name}")
    for inner in ("items", "additionalProperties"):
        if isinstance(small.get(inner), dict) and isinstance(real.get(inner), dict):
            yield from differences(small[inner], real[inner], f"{path}[]")


def _set(value: Any) -> Any:
    return frozenset(map(str, value)) if isinstance(value, list) else value or None


def _stored(crd: Object) -> Any:
    return next(version for version in crd["spec"]["versions"] if version["storage"])


@pytest.mark.assets
@pytest.mark.parametrize("name", NAMES)
def test_small_definition_agrees_with_its_project(name: str) -> None:
    small = next(crd for crd in foreign_crds() if crd["metadata"]["name"] == name)
    real = next(crd for crd in real_crds(tiers.assets()) if crd["metadata"]["name"] == name)
    for part in ("group", "scope"):
        assert small["spec"][part] == real["spec"][part]
    for part in ("plural", "singular", "kind"):
        assert small["spec"]["names"].get(part) == real["spec"]["names"].get(part)
    versions = (_stored(small), _stored(real))
    assert versions[0]["name"] == versions[1]["name"]
    assert set(versions[0].get("subresources") or {}) == set(versions[1].get("subresources") or {})
    schemas = [version["schema"]["openAPIV3Schema"] for version in versions]
    assert list(differences(*schemas)) == []
